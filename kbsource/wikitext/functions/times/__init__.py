"""Dates, ages and times of day, and how languages write them."""
