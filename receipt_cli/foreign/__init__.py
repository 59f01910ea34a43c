"""Other systems' records of a run in: training receipts, reports and summaries → a receipt that names its origin."""
