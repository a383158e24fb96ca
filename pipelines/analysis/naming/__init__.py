"""Names of groups: phrases of their texts, chosen and measured by readers who know only the names."""
