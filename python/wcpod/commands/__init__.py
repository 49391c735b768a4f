"""The commands of `wcpod` beyond those of `wcpod.cli`, one file each. Only click is imported before a command runs."""
