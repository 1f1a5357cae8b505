"""The report of a run: one self-contained page, made from nothing but the run folder."""

from rewardswap.report.page import write_report as write_report
