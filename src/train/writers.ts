// Writers of what a training reports: lines of CSV and of JSON. tensorBoard.ts has the one for TensorBoard.
import { ArgumentError } from '../errors/index.ts'
import { checkCount, checkMethod, isPlainObject, valueText } from '../protocol/index.ts'
import { fileSystem } from './fileSystem.ts'
import type { Fs } from './fileSystem.ts'

/** What a training reports at a step: numbers by name. */
export type Report = Readonly<Record<string, number>>

/** Gets what a training reports. A writer that fails ends the training. */
export interface Writer {
  /** Writes numbers of a step. */
  write(step: number, report: Report): void
  /** Everything is on the disk, and nothing follows. */
  close(): void
}

/** Throws ArgumentError unless they are a step and numbers by name. */
export function checkReport(where: string, step: number, report: Report): void {
  if (!Number.isSafeInteger(step) || step < 0)
    throw new ArgumentError(`${where}: argument 'step' must be an integer from 0 on, got ${valueText(step)}.`)
  if (!isPlainObject(report))
    throw new ArgumentError(`${where}: argument 'report' must be an object of numbers, such as { loss: 0.5 }, got ${valueText(report)}.`)
  for (const [name, value] of Object.entries(report))
    if (typeof value !== 'number') throw new ArgumentError(`${where}: report.${name} must be a number, got ${valueText(value)}. Write tensor.item().`)
}

/** A file to which text is added. What was there stays, so that a training that goes on continues it. */
abstract class LineWriter implements Writer {
  readonly path: string
  readonly #fs: Fs
  #file: number | null

  constructor(path: string) {
    const where = new.target.name
    if (typeof path !== 'string' || path === '')
      throw new ArgumentError(`${where}: argument 'path' must be the path of a file, got ${valueText(path)}.`)
    this.path = path
    this.#fs = fileSystem(where)
    this.#file = this.#fs.openSync(path, 'a+')
  }

  abstract write(step: number, report: Report): void

  protected append(text: string): void {
    if (this.#file === null) throw new ArgumentError(`${this.constructor.name}.write: the file is closed; make a new writer.`)
    this.#fs.writeSync(this.#file, text)
  }

  /** The text that was there before. */
  protected existing(): string {
    return this.#fs.readFileSync(this.path, 'utf8')
  }

  close(): void {
    checkMethod(this, 'close', arguments, 0)
    if (this.#file === null) return
    this.#fs.fsyncSync(this.#file)
    this.#fs.closeSync(this.#file)
    this.#file = null
  }
}

/** A JSON object a line: `{"step":3,"loss":0.5}`; numbers that JSON lacks are texts: `"NaN"`. {@link readJsonLines} of `tensorfx/data` reads it. */
export class JsonLinesWriter extends LineWriter {
  constructor(path: string) {
    checkCount('JsonLinesWriter', arguments, 1)
    super(path)
  }

  override write(step: number, report: Report): void {
    checkMethod(this, 'write', arguments, 2)
    checkReport('JsonLinesWriter.write', step, report)
    const values = Object.entries(report).map(([name, value]) => [name, Number.isFinite(value) ? value : String(value)])
    this.append(`${JSON.stringify({ step, ...Object.fromEntries(values) })}\n`)
  }
}

/** A text in CSV: in quotes where it has a comma, a quote or an end of line. */
const cell = (text: string): string => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)

/**
 * A line for each step, with a column for each name, those of the first report. A report with other names begins a new header, since a line of a file cannot be changed; leave them out of one
 * file, or use {@link JsonLinesWriter}.
 */
export class CsvWriter extends LineWriter {
  #columns: string | null

  constructor(path: string) {
    checkCount('CsvWriter', arguments, 1)
    super(path)
    const header = this.existing()
      .split('\n')
      .findLast((line) => line.startsWith('step'))
    this.#columns = header ?? null
  }

  override write(step: number, report: Report): void {
    checkMethod(this, 'write', arguments, 2)
    checkReport('CsvWriter.write', step, report)
    const columns = ['step', ...Object.keys(report)].map(cell).join(',')
    if (columns !== this.#columns) this.append(`${columns}\n`)
    this.#columns = columns
    this.append(`${[step, ...Object.values(report)].map(String).join(',')}\n`)
  }
}
