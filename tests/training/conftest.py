"""The tiny runs are shared by these tests."""
