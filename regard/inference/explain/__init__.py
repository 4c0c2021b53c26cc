"""What an output depends on: attributions, rollout, faithfulness."""
