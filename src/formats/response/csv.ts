import { parse } from 'csv-parse/sync'
import type { Json, JsonObject } from '../../base/index.ts'
import { decodeText } from './charset.ts'
import type { ResponseFormat } from './response.ts'

/** Most rows of one response; larger exports have to be paged. */
const ROWS_MAX = 500_000
const DELIMITERS = [',', ';', '\t'] as const
/** Most columns; spreadsheets have no more. */
const COLUMNS_MAX = 16_384
/** Length of the text in which the delimiter is detected. */
const HEAD_LENGTH_MAX = 16_384

/**
 * `csv`: RFC 4180 with a header line, any line ends, quotes, an optional byte order mark. All values are texts.
 *
 * A short row leaves its last columns out, a row longer than the header is an error, columns of the same name become a list.
 */
export const csv: ResponseFormat = {
  format: 'csv',
  summary:
    'Comma-separated values with a header line, read as a list of objects of texts. The delimiter is `,`, `;` or tab, whichever the header line has most of.',
  accept: 'text/csv',
  decode: (body, charset) => {
    const text = decodeText(body, charset)
    const [header = [], ...rows] = parse(text, {
      delimiter: guessDelimiter(text),
      record_delimiter: ['\r\n', '\n', '\r'],
      relax_column_count: true,
      skip_empty_lines: true,
      to: ROWS_MAX + 2,
    })
    if (rows.length > ROWS_MAX) throw new Error(`has more than ${ROWS_MAX} rows`)
    if (header.length > COLUMNS_MAX) throw new Error(`has more than ${COLUMNS_MAX} columns`)
    const repeated = repeatedNames(header)
    return rows.map((row, index) => record(header, repeated, row, index + 1))
  },
}

/** The most frequent delimiter of the header line outside quotes; a comma when it has none. */
function guessDelimiter(text: string): string {
  const [line = ''] = text
    .slice(0, HEAD_LENGTH_MAX)
    .replace(/"[^"]*"/g, '')
    .split(/[\r\n]/, 1)
  const counts = DELIMITERS.map((delimiter) => line.split(delimiter).length)
  return DELIMITERS[counts.indexOf(Math.max(...counts))] ?? ','
}

function repeatedNames(header: readonly string[]): ReadonlySet<string> {
  const seen = new Set<string>()
  return new Set(header.filter((name) => seen.size === seen.add(name).size))
}

/** @param repeated names that several columns share */
function record(
  header: readonly string[],
  repeated: ReadonlySet<string>,
  row: readonly string[],
  number: number,
): JsonObject {
  if (row.slice(header.length).some((cell) => cell !== ''))
    throw new Error(`row ${number} has ${row.length} cells, but the header line names ${header.length} columns`)
  const fields = new Map<string, Json>()
  const lists = new Map<string, string[]>()
  for (const [index, name] of header.entries()) {
    const cell = row[index]
    if (cell === undefined) break
    const list = lists.get(name)
    if (list !== undefined) list.push(cell)
    else if (!repeated.has(name)) fields.set(name, cell)
    else {
      const cells = [cell]
      lists.set(name, cells)
      fields.set(name, cells)
    }
  }
  for (const [name, [only = '', ...others]] of lists) if (others.length === 0) fields.set(name, only)
  return Object.fromEntries(fields)
}
