-- The implementation documents of one file's kept rows, each once.
with revisions as (
    select distinct
        kept.submission_id,
        kept.board,
        hardware.product,
        hardware.architecture,
        implementers.item is not null as implements
    from file_rows
    cross join file
    join kept on kept.precedence = file.precedence and kept.item = file_rows.item and kept.kept
    join hardware using (label)
    left join implementers on implementers.precedence = file.precedence and implementers.item = file_rows.item
),

described as (
    select
        submission_id,
        board,
        product,
        product as gpu,
        architecture,
        bool_or(implements) as implements,
        any_value(boards.problem_digest) as problem_digest,
        any_value(boards.dtypes) as dtypes,
        any_value(representatives.source_digest) as source_digest,
        any_value(representatives.source_bytes) as source_bytes,
        any_value(representatives.file_name) as file_name,
        'python' as language
    from revisions
    join boards using (board)
    join representatives using (submission_id)
    group by submission_id, board, product, architecture
),

documented as (
    select *, implementation_document(described) as document from described
)

select
    submission_id,
    board,
    product,
    architecture,
    implements,
    digest(document) as implementation_digest,
    'gpumode-kernelbot:' || submission_id as submission_key,
    problem_digest,
    language,
    [architecture] as architectures,
    [product] as products,
    coalesce(dtypes, []) as dtypes,
    document
from documented
