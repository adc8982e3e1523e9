"""The backtracking search: candidates, constraints between picks, and what prunes it."""
