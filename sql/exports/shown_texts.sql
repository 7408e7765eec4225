-- Texts that a submission that is shown has, whoever else has them too.
create or replace temp view shown_texts as
select source_digest from all_submissions where source in (from shown) and source_digest is not null
