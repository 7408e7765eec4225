select reason, runs from ineligible where source = $source and problem = $problem order by runs desc, reason
