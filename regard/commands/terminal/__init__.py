"""What commands print while they compute."""
