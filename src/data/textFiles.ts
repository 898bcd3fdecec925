// CSV and JSON lines: as arrays of samples, which are datasets, or as streams that read a file while it is used.
import { ArgumentError } from '../errors/index.ts'
import { chunksOf } from '../interop/fileSource.ts'
import type { FileSource } from '../interop/fileSource.ts'
import { parseJson } from '../protocol/jsonText.ts'
import { checkArgument, checkCount, checkOptions, valueText } from '../protocol/index.ts'
import { CsvRows } from './csvRows.ts'
import { IterableDataset } from './dataset.ts'

/** A row of a CSV file, by column. */
export type CsvRow = Record<string, string | number>

/** Options of {@link readCsv} and {@link streamCsv}. */
export interface CsvOptions {
  /** The names of the columns, for a file whose first row does not say them. Default: the first row. */
  readonly columns?: readonly string[]
  /** What separates values, one character. Default `','`. */
  readonly delimiter?: string
  /** The columns that are numbers; an empty value is NaN. Default: in readCsv those with numbers only, in streamCsv none. */
  readonly numbers?: readonly string[]
}

function checked(where: string, options: CsvOptions): CsvOptions {
  checkOptions(
    where,
    options,
    { columns: true, delimiter: true, numbers: true },
    { header: "the first row has the columns' names; give 'columns' for a file without" },
  )
  const { columns, delimiter = ',', numbers } = options
  for (const [name, list] of Object.entries({ columns, numbers }))
    checkArgument(
      list === undefined || (Array.isArray(list) && list.every((item) => typeof item === 'string')),
      where,
      name,
      'an array of strings',
      list,
    )
  if (typeof delimiter !== 'string' || delimiter.length !== 1 || /["\r\n]/.test(delimiter))
    throw new ArgumentError(`${where}: option 'delimiter' must be one character, no quote and no end of line, got ${valueText(delimiter)}.`)
  return options
}

/** The texts of a file, part by part. */
async function* textsOf(where: string, source: FileSource): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const text = (chunk?: Uint8Array): string => {
    try {
      return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true })
    } catch (error) {
      throw new ArgumentError(`${where}: the file is not UTF-8; convert it first.`, { cause: error })
    }
  }
  for await (const chunk of chunksOf(where, source)) yield text(chunk)
  yield text()
}

/** The rows, with the columns' names. */
async function* rowsOf(
  where: string,
  source: FileSource,
  { columns, delimiter = ',' }: CsvOptions,
): AsyncGenerator<[string, string][], void, undefined> {
  const rows = new CsvRows(where, delimiter)
  let names = columns ?? null
  let line = 0
  const named = (values: readonly string[]): [string, string][] | null => {
    line++
    if (names === null) {
      names = values
      const twice = values.find((name, i) => values.indexOf(name) !== i)
      if (twice !== undefined)
        throw new ArgumentError(`${where}: two columns are called '${twice}'; give other names by 'columns', and leave out the first row.`)
      return null
    }
    if (values.length !== names.length)
      throw new ArgumentError(`${where}: row ${line} has ${values.length} values, but there are ${names.length} columns: ${names.join(', ')}.`)
    return names.map((name, i) => [name, values[i] ?? ''])
  }
  for await (const text of textsOf(where, source))
    for (const values of rows.add(text)) {
      const row = named(values)
      if (row !== null) yield row
    }
  for (const values of rows.end()) {
    const row = named(values)
    if (row !== null) yield row
  }
}

const isNumber = (text: string): boolean => text.trim() !== '' && !Number.isNaN(Number(text))

function numberOf(where: string, column: string, text: string): number {
  if (text.trim() === '' || text.trim().toLowerCase() === 'nan') return NaN
  if (isNumber(text)) return Number(text)
  throw new ArgumentError(`${where}: column '${column}' is one of numbers, but has the value ${valueText(text)}.`)
}

const withNumbers = (where: string, row: readonly [string, string][], numbers: ReadonlySet<string>): CsvRow =>
  Object.fromEntries(row.map(([column, text]) => [column, numbers.has(column) ? numberOf(where, column, text) : text]))

/** Throws ArgumentError for a column that is not there. */
function checkColumns(where: string, numbers: readonly string[], row: readonly [string, string][] | undefined): void {
  const unknown = row === undefined ? undefined : numbers.find((name) => !row.some(([column]) => column === name))
  if (unknown !== undefined)
    throw new ArgumentError(`${where}: there is no column '${unknown}'; there are ${(row ?? []).map(([column]) => column).join(', ')}.`)
}

/**
 * The rows of a CSV file (RFC 4180: quoted values may have delimiters and ends of lines), by its path, URL, Blob or bytes: an array of objects, which is a dataset. A column whose
 * values are all numbers, or empty, has numbers.
 *
 * @throws ArgumentError for a file that cannot be read, a quote that does not end, and rows of other lengths.
 * @example
 * const rows = await readCsv('iris.csv') // [{ sepalLength: 5.1, species: 'setosa' }, …]
 */
export async function readCsv(source: FileSource, options: CsvOptions = {}): Promise<CsvRow[]> {
  checkCount('readCsv', arguments, 2)
  checked('readCsv', options)
  const rows: [string, string][][] = []
  for await (const row of rowsOf('readCsv', source, options)) rows.push(row)
  const [first = []] = rows
  checkColumns('readCsv', options.numbers ?? [], rows[0])
  const inferred = first
    .map(([name]) => name)
    .filter((_, i) => rows.every((row) => isNumber(row[i]?.[1] ?? '') || row[i]?.[1] === '') && rows.some((row) => row[i]?.[1] !== ''))
  const numbers = new Set(options.numbers ?? inferred)
  return rows.map((row) => withNumbers('readCsv', row, numbers))
}

/** The rows of a CSV file as a stream, for files that do not fit into memory. Values are texts, but in the columns that `numbers` names. */
export function streamCsv(source: FileSource, options: CsvOptions = {}): IterableDataset<CsvRow> {
  checkCount('streamCsv', arguments, 2)
  checked('streamCsv', options)
  const names = options.numbers ?? []
  const numbers = new Set(names)
  return new FileStream(async function* () {
    let isFirst = true
    for await (const row of rowsOf('streamCsv', source, options)) {
      if (isFirst) checkColumns('streamCsv', names, row)
      isFirst = false
      yield withNumbers('streamCsv', row, numbers)
    }
  })
}

/** The values of a file with one JSON value in each line, by its path, URL, Blob or bytes: an array, which is a dataset. Throws ArgumentError, which names the line, for one that is not a JSON. */
export async function readJsonLines<T = unknown>(source: FileSource): Promise<T[]> {
  checkCount('readJsonLines', arguments, 1)
  const values: T[] = []
  for await (const value of jsonLines<T>('readJsonLines', source)) values.push(value)
  return values
}

/** The values of a file with one JSON value in each line as a stream, for files that do not fit into memory. */
export function streamJsonLines<T = unknown>(source: FileSource): IterableDataset<T> {
  checkCount('streamJsonLines', arguments, 1)
  return new FileStream(() => jsonLines<T>('streamJsonLines', source))
}

async function* jsonLines<T>(where: string, source: FileSource): AsyncGenerator<T, void, undefined> {
  let [rest, line] = ['', 0]
  // The caller says what the file holds.
  const parse = (text: string): T => parseJson(where, `line ${line}`, text) as T
  for await (const text of textsOf(where, source)) {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const one of lines) {
      line++
      if (one.trim() !== '') yield parse(one)
    }
  }
  line++
  if (rest.trim() !== '') yield parse(rest)
}

/** A file that is read from its beginning each time. */
class FileStream<T> extends IterableDataset<T> {
  readonly #read: () => AsyncGenerator<T, void, undefined>

  constructor(read: () => AsyncGenerator<T, void, undefined>) {
    super()
    this.#read = read
  }

  [Symbol.asyncIterator](): AsyncIterator<T> {
    return this.#read()
  }
}
