"""What several tasks use."""
