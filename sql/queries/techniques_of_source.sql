select trait, value, line, context, evidence, extractor
from techniques
where source_digest = $source_digest
order by line, trait
