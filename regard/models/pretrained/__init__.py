"""Networks for the weights of pretrained models, built from the same blocks as all others."""
