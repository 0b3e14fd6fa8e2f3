"""Gaussian approximations q of p(x|y, theta), and the weights that make them exact."""
