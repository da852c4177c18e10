import { CsvError, parse } from 'csv-parse/sync'
import { z } from 'zod'
import { isJsonObject, type Json, type JsonObject } from '../../../foundation/json/index.ts'
import { refineWith } from '../schema-types.ts'
import { decodeText } from './charset.ts'
import { BodyFormatError, type ResponseFormat } from './response.ts'

/** Most rows of one response; larger exports have to be paged. */
const ROWS_MAX = 500_000
const DELIMITERS = [',', ';', '\t'] as const
/** Most columns; spreadsheets have no more. */
const COLUMNS_MAX = 16_384
/** Length of the text in which the delimiter is detected. */
const HEAD_LENGTH_MAX = 16_384

const NO_QUOTE = 'none'

const tableKeys = {
  quote: z
    .string()
    .max(4)
    .superRefine(refineWith(findQuoteProblem, 'csv.quote'))
    .default('"')
    .describe('The character around values; within one it is doubled. `none`: quotes are characters like any other.'),
  skip_lines: z.int().min(0).max(1_000).default(0).describe('Lines before the header line, or before the first row.'),
  columns: z
    .array(z.string().max(200))
    .min(1)
    .max(1_000)
    .optional()
    .describe('Names of the columns, of an answer without a header line. Default: the first line has them.'),
}

const tsvConfig = z.strictObject(tableKeys)

const csvConfig = z.strictObject({
  delimiter: z
    .string()
    .min(1)
    .max(4)
    .superRefine(refineWith(findDelimiterProblem, 'csv.delimiter'))
    .optional()
    .describe('What separates values. Default: `,`, `;` or tab, whichever the first line has most of.'),
  ...tableKeys,
})

type TableSettings = z.output<typeof csvConfig>

/**
 * `csv`: RFC 4180 with a header line, any line ends, quotes, an optional byte order mark. All values are texts.
 *
 * A short row leaves its last columns out, a row longer than the header is an error, columns of the same name become a list.
 */
export const csv: ResponseFormat = tableFormat(
  {
    format: 'csv',
    summary:
      'Comma-separated values with a header line, read as a list of objects of texts. The delimiter is `,`, `;` or tab, whichever the header line has most of; tab in an answer of the type `text/tab-separated-values`.',
    accept: 'text/csv',
    config: csvConfig,
  },
  (settings) => csvConfig.parse(settings),
)

/** `tsv`: the same with tabs. */
export const tsv: ResponseFormat = tableFormat(
  {
    format: 'tsv',
    summary: 'Values separated by tabs, read as those of `csv`; the default of the type `text/tab-separated-values`.',
    accept: 'text/tab-separated-values',
    config: tsvConfig,
  },
  (settings) => ({ ...tsvConfig.parse(settings), delimiter: '\t' }),
)

function tableFormat(
  base: Pick<ResponseFormat, 'format' | 'summary' | 'accept' | 'config'>,
  read: (settings: Json) => TableSettings,
  settings: Json = {},
): ResponseFormat {
  const parsed = read(settings)
  const configure = (given: Json) => tableFormat(base, read, given)
  return { ...base, settings, configure, decode: (body, charset) => readTable(decodeText(body, charset), parsed) }
}

const TSV_TYPE = /^text\/tab-separated-values\b/i

/** Whether a content type says that values are separated by tabs. */
export function isTsvType(contentType: string): boolean {
  return TSV_TYPE.test(contentType)
}

/** The format of an answer of that type: of `csv` without a `delimiter`, the type may name it. */
export function formatForType(format: ResponseFormat, contentType: string): ResponseFormat {
  if (format.format !== 'csv' || !isTsvType(contentType)) return format
  const settings = isJsonObject(format.settings) ? format.settings : {}
  return format.configure?.({ delimiter: '\t', ...settings }) ?? format
}

/** @throws BodyFormatError naming the row */
function readTable(whole: string, { delimiter, quote, skip_lines: skipped, columns }: TableSettings): Json {
  const text = withoutLines(whole, skipped)
  const first = columns === undefined ? 0 : 1
  const rows = parseRows(text, delimiter ?? guessDelimiter(text), quote, { skipped, first })
  const header = columns ?? rows.shift() ?? []
  if (rows.length > ROWS_MAX) throw new BodyFormatError(`has more than ${ROWS_MAX} rows`)
  if (header.length > COLUMNS_MAX) throw new BodyFormatError(`has more than ${COLUMNS_MAX} columns`)
  const repeated = repeatedNames(header)
  return rows.map((row, index) => record(header, repeated, row, index + 1))
}

/** @param place how many lines are left out before the text, and the number of its first row; 0 is the header line */
function parseRows(
  text: string,
  delimiter: string,
  quote: string,
  place: { readonly skipped: number; readonly first: number },
): string[][] {
  try {
    return parse(text, {
      delimiter,
      ...(quote === NO_QUOTE ? { quote: false, escape: false } : { quote, escape: quote }),
      record_delimiter: ['\r\n', '\n', '\r'],
      relax_column_count: true,
      skip_empty_lines: true,
      to: ROWS_MAX + 2,
    })
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    throw new BodyFormatError(`${problemOf(error, place)}; see quote and delimiter of response_format`, error)
  }
}

/** What is wrong where, without the text. */
function problemOf(error: CsvError, { skipped, first }: { readonly skipped: number; readonly first: number }): string {
  const { code, lines, records } = error as CsvError & { readonly lines?: number; readonly records?: number }
  const number = (records ?? 0) + first
  const row = number === 0 ? 'the header line' : `row ${number}`
  const line = `${row} (line ${(lines ?? 0) + skipped})`
  switch (code) {
    case 'CSV_QUOTE_NOT_CLOSED':
      return `opens a quote in ${row} that is not closed`
    case 'INVALID_OPENING_QUOTE':
      return `has a quote within a value in ${line}`
    case 'CSV_INVALID_CLOSING_QUOTE':
      return `has text behind a closing quote in ${line}`
    default:
      return `cannot be split into values in ${line}`
  }
}

/** The text behind its first lines. */
function withoutLines(text: string, count: number): string {
  let start = 0
  for (let line = 0; line < count && start < text.length; line += 1) start = lineEnd(text, start)
  return text.slice(start)
}

function lineEnd(text: string, start: number): number {
  const ends = new RegExp(LINE_END, 'g')
  ends.lastIndex = start
  return ends.test(text) ? ends.lastIndex : text.length
}

const LINE_END = /\r\n|\n|\r/

/** The most frequent delimiter of the first line outside quotes; a comma when it has none. */
function guessDelimiter(text: string): string {
  const [line = ''] = text
    .slice(0, HEAD_LENGTH_MAX)
    .replace(/"[^"]*"/g, '')
    .split(/[\r\n]/, 1)
  const counts = DELIMITERS.map((delimiter) => line.split(delimiter).length)
  return DELIMITERS[counts.indexOf(Math.max(...counts))] ?? ','
}

function findQuoteProblem(quote: string): string | undefined {
  return quote === NO_QUOTE || /^[^\w\s]$/.test(quote)
    ? undefined
    : `must be one character that is no letter, or ${NO_QUOTE}`
}

function findDelimiterProblem(delimiter: string): string | undefined {
  return /[\r\n"]/.test(delimiter) ? 'must hold neither line ends nor quotes' : undefined
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
    throw new BodyFormatError(`has ${row.length} values in row ${number}, but names for ${header.length} columns`)
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
