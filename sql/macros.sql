-- Canonical JSON (RFC 8785) and digests over columns. An absent value is null, and a member made of null is null too.

-- DuckDB prints a double in its shortest form; only the layout differs from ECMAScript's. Each macro mentions its argument
-- few times, since an argument is planned anew wherever it is mentioned.
create or replace macro jcs_fraction(printed, zeros) as
    case when starts_with(printed, '-') then '-' else '' end
    || zeros || replace(ltrim(split_part(printed, 'e', 1), '-'), '.', '');

create or replace macro jcs_whole(printed) as
    rpad(
        replace(split_part(printed, 'e', 1), '.', ''),
        split_part(printed, '+', 2)::int + case when starts_with(printed, '-') then 2 else 1 end,
        '0'
    );

create or replace macro jcs_exponent(printed) as
    case
        when ends_with(printed, 'e-05') then jcs_fraction(printed, '0.0000')
        when ends_with(printed, 'e-06') then jcs_fraction(printed, '0.00000')
        when regexp_matches(printed, 'e\+(1[6-9]|20)$') then jcs_whole(printed)
        else regexp_replace(printed, 'e-0(\d)$', 'e-\1')
    end;

create or replace macro jcs_printed(printed) as
    case
        when contains(printed, 'e') then jcs_exponent(printed)
        when ends_with(printed, '.0') then left(printed, -2)
        when printed in ('nan', '-nan', 'inf', '-inf') then null
        else printed
    end;

create or replace macro jcs_number(x) as case when x = 0 then '0' else jcs_printed(x::varchar) end;

-- The escapes that JSON asks for and no others, `\u001f` in lower case. Few texts need any, so they are looked for first.
create or replace macro jcs_escape_quotes(s) as replace(replace(s, '\', '\\'), '"', '\"');
create or replace macro jcs_escape_layout(s) as
    replace(replace(replace(replace(replace(s, chr(8), '\b'), chr(9), '\t'), chr(10), '\n'), chr(12), '\f'), chr(13), '\r');
create or replace macro jcs_escape_00(s) as
    replace(replace(replace(replace(s, chr(0), '\u0000'), chr(1), '\u0001'), chr(2), '\u0002'), chr(3), '\u0003');
create or replace macro jcs_escape_04(s) as
    replace(replace(replace(replace(s, chr(4), '\u0004'), chr(5), '\u0005'), chr(6), '\u0006'), chr(7), '\u0007');
create or replace macro jcs_escape_0b(s) as
    replace(replace(replace(replace(s, chr(11), '\u000b'), chr(14), '\u000e'), chr(15), '\u000f'), chr(16), '\u0010');
create or replace macro jcs_escape_11(s) as
    replace(replace(replace(replace(s, chr(17), '\u0011'), chr(18), '\u0012'), chr(19), '\u0013'), chr(20), '\u0014');
create or replace macro jcs_escape_15(s) as
    replace(replace(replace(replace(s, chr(21), '\u0015'), chr(22), '\u0016'), chr(23), '\u0017'), chr(24), '\u0018');
create or replace macro jcs_escape_19(s) as
    replace(replace(replace(replace(s, chr(25), '\u0019'), chr(26), '\u001a'), chr(27), '\u001b'), chr(28), '\u001c');
create or replace macro jcs_escape_1d(s) as
    replace(replace(replace(s, chr(29), '\u001d'), chr(30), '\u001e'), chr(31), '\u001f');
create or replace macro jcs_escape(s) as
    jcs_escape_1d(jcs_escape_19(jcs_escape_15(jcs_escape_11(jcs_escape_0b(jcs_escape_04(jcs_escape_00(jcs_escape_layout(jcs_escape_quotes(s)))))))));

create or replace macro jcs_string(s) as
    case
        when s is null then null
        when regexp_matches(s, '["\\\x00-\x1f]') then '"' || jcs_escape(s) || '"'
        else '"' || s || '"'
    end;

-- For text that needs no escapes: digests, instants and our own words.
create or replace macro jcs_plain(s) as '"' || s || '"';

-- `value` is canonical JSON text; without one there is no member, and `concat_ws` leaves it out of its object.
create or replace macro jcs_member(name, value) as '"' || name || '":' || value;

create or replace macro digest(content) as 'sha256:' || sha256(content);

-- floor(x + 0.5) in doubles.
create or replace macro nearest_integer(x) as floor(x + 0.5)::bigint;

-- UTC with three decimals, cut off, in whatever zone the session is.
create or replace macro instant(t) as strftime(make_timestamp(epoch_us(t)), '%Y-%m-%dT%H:%M:%S.%gZ');

create or replace macro submission_number(r) as split_part(r.submission_key, ':', 2);

create or replace macro run_benchmark(r) as r.problem || coalesce('/' || r.case_index, '');

-- SOL-ExecBench's submissions go by their bare number.
create or replace macro run_external_id(r) as
    case when r.source = 'sol-execbench' then '' else 'submission/' end || submission_number(r);

-- A run's document without metadata, from the columns of its row; members stand in the order of their names.
create or replace macro run_document(r) as
    '{"apiVersion":"kernelindex.dev/v1alpha1","kind":"BenchmarkRun","spec":{' || concat_ws(
        ',',
        jcs_member('environmentDigest', jcs_plain(r.environment_digest)),
        jcs_member('implementationDigest', jcs_plain(r.implementation_digest)),
        jcs_member(
            'measurements',
            case
                when r.primary_metric = 'score' then
                    '[{"metric":"score","statistic":' || jcs_plain(r.primary_statistic)
                    || ',"unit":"s","value":' || jcs_number(r.primary_value) || '}]'
                when r.std_ns is not null then
                    '[{' || concat_ws(
                        ',',
                        '"metric":"latency"',
                        jcs_member('sampleCount', r.sample_count::varchar),
                        '"statistic":"std","unit":"ns"',
                        jcs_member('value', jcs_number(r.std_ns))
                    ) || '}]'
            end
        ),
        jcs_member('observedAt', jcs_plain(instant(r.observed_at))),
        jcs_member('protocolDigest', jcs_plain(r.protocol_digest)),
        '"sourceNative":{"benchmark":' || jcs_string(run_benchmark(r))
        || ',"externalId":' || jcs_plain(run_external_id(r))
        || ',"metrics":' || r.native_metrics
        || ',"source":' || jcs_plain(r.source) || '}',
        jcs_member('status', jcs_plain(r.status)),
        case
            when r.primary_metric = 'latency' then
                '"timing":{' || concat_ws(
                    ',',
                    '"latencyNs":{' || concat_ws(
                        ',',
                        jcs_member('maximum', nearest_integer(r.max_ns)::varchar),
                        jcs_member('mean', r.primary_value::bigint::varchar),
                        jcs_member('minimum', nearest_integer(r.min_ns)::varchar)
                    ) || '}',
                    jcs_member('primaryStatistic', jcs_plain(r.primary_statistic)),
                    jcs_member('samples', r.sample_count::varchar)
                ) || '}'
        end,
        jcs_member('workloadDigest', jcs_plain(r.workload_digest))
    ) || '}}';

create or replace macro comparison_key(r) as digest(
    '{"correctness":' || jcs_plain(r.correctness_key)
    || ',"environment":' || jcs_plain(r.environment_digest)
    || ',"metric":' || jcs_plain(r.primary_metric || ':' || r.primary_statistic || ':' || r.primary_unit)
    || ',"operation":' || jcs_plain(r.problem_digest)
    || ',"protocol":' || jcs_plain(r.protocol_digest)
    || ',"v":1,"workload":' || jcs_plain(r.workload_digest) || '}'
);
