-- How values are written into exports of lines. Published snapshots do not have these macros.

create or replace macro printed_double(x) as case when isnan(x) or isinf(x) then null else x::varchar end;

-- UTC, as many decimals as the microseconds need.
create or replace macro printed_instant(t) as
    regexp_replace(strftime(make_timestamp(epoch_us(t)), '%Y-%m-%dT%H:%M:%S.%f'), '\.?0+$', '') || 'Z';

-- Of text and of lists. These are no canonical documents, so any escapes that JSON allows will do.
create or replace macro printed_json(x) as to_json(x)::varchar;

-- A spreadsheet takes a cell that begins so for a formula, also behind blanks and control characters. A text that begins with an
-- apostrophe gets one more, so that whoever takes one leading apostrophe away has every text as it was.
create or replace macro csv_safe(s) as
    case when regexp_matches(s, '^([\x00-\x20]*[=+\-@＝＋－＠]|[\t\r\n''])') then '''' || s else s end;

-- RFC 4180; an empty text is quoted, so that it is not taken for an absent value.
create or replace macro csv_quoted(s) as
    case
        when s = '' or regexp_matches(s, '[",\r\n]|^ | $') then '"' || replace(s, '"', '""') || '"'
        else s
    end;
