"""A receipt in a CI job: gates, and what the job's page, its annotations, test reports and outputs say of them."""
