-- What the statements of the catalogue share. Its ids are UUIDs of version 5: of the table and the row's natural key, in one
-- namespace that never changes, 6f0c8a52-3d5e-5b1c-9a7e-2f4b6d8e1c03.
create or replace macro uuid_of_sha1(digits) as
    regexp_replace(digits, '(.{8})(.{4}).(.{3}).*', '\1-\2-5\3-')
    || translate(substr(digits, 17, 1), '0123456789abcdef', '89ab89ab89ab89ab')
    || regexp_replace(digits, '.{17}(.{3})(.{12}).*', '\1-\2');

create or replace macro catalogue_id(catalogue_table, natural_key) as
    uuid_of_sha1(sha1(unhex('6f0c8a523d5e5b1c9a7e2f4b6d8e1c03') || encode(catalogue_table || '/' || natural_key)));

-- A canonical document has its `kind` just before its `spec`; the metadata come between them.
create or replace macro with_metadata(document, metadata) as
    concat(
        left(document, position(',"spec":' in document)), '"metadata":', metadata,
        substr(document, position(',"spec":' in document))
    );
