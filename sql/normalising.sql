-- What only the normalising of sources needs; published snapshots do not have these macros.

create or replace macro jcs_strings(list) as
    '[' || array_to_string(list_transform(list, lambda s: jcs_string(s)), ',') || ']';

-- `dtypes` is null where nobody states them, `source_digest` where there is no source text or it is still unread.
create or replace macro implementation_document(r) as
    '{"apiVersion":"kernelindex.dev/v1alpha1","kind":"ImplementationRevision","spec":{"callable":{"language":'
    || jcs_plain(r.language)
    || '},"licensing":{},"operation":{"specDigest":' || jcs_plain(r.problem_digest)
    || '},"projectRevision":{"version":"submission-' || r.submission_id || '"},'
    || case
        when r.source_digest is null then ''
        else
            '"source":{' || concat_ws(
                ',',
                jcs_member('contentDigest', jcs_plain(r.source_digest)),
                jcs_member('fileName', jcs_string(nullif(r.file_name, ''))),
                jcs_member('sizeBytes', r.source_bytes::varchar)
            ) || '},'
    end
    || '"support":{' || concat_ws(
        ',',
        jcs_member('dtypes', jcs_strings(r.dtypes)),
        '"hardwareArchitectures":[' || jcs_string(r.architecture) || ']',
        '"productsTested":[' || jcs_string(r.gpu) || ']'
    ) || '}}}';

-- Figures count when they are finite and of a plausible sign; a latency's rounded value must have a canonical form too.
create or replace macro usable_figure(x) as
    coalesce(not isnan(x) and not isinf(x) and x > 0, false);
create or replace macro usable_latency(x) as
    coalesce(not isnan(x) and not isinf(x) and x > 0 and floor(x + 0.5) <= 9007199254740991, false);
create or replace macro usable_spread(x) as
    coalesce(not isnan(x) and not isinf(x) and x >= 0, false);
create or replace macro usable_count(x) as
    coalesce(not isnan(x) and not isinf(x) and x >= 1 and x <= 9007199254740991 and x = floor(x), false);

-- DuckDB would read `1_000` as a number.
create or replace macro figure_of_text(s) as case when not contains(s, '_') then try_cast(s as double) end;

create or replace macro latency_of_text(s) as
    case when usable_latency(figure_of_text(s)) then figure_of_text(s) end;

create or replace macro figure_flag(name, x, usable) as
    case
        when x is null or usable then null
        when isnan(x) or isinf(x) or abs(x) >= 9007199254740991 then 'NOT_FINITE:' || name
        else 'OUT_OF_RANGE:' || name
    end;

create or replace macro unreadable_flag(name, stated, figure) as
    case when stated is not null and figure is null then 'UNREADABLE:' || name end;

create or replace macro jcs_cut(s) as jcs_string(case when length(s) > 2000 then left(s, 2000) || '…' else s end);

-- Ids of the per-case files are redrawn in every export, so they hold for one content of one file alone.
create or replace macro kernelbot_author(family, file_digest, user_id) as
    'gpumode-kernelbot:'
    || case when family = 'aggregate' then 'user/' else 'export/' || substr(file_digest, 8, 12) || '/' end
    || user_id;
