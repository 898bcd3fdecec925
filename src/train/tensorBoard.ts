// Event files of TensorBoard: scalars, histograms and texts. PyTorch's torch.utils.tensorboard.SummaryWriter, byte for byte.
import { ArgumentError } from '../errors/index.ts'
import { checkCount, checkMethod, checkOptions, valueText } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'
import { bytesField, doubleField, doublesField, floatField, floatsField, integerField, record } from './protobuf.ts'
import { fileSystem } from './fileSystem.ts'
import type { Fs } from './fileSystem.ts'
import { checkReport } from './writers.ts'
import type { Report, Writer } from './writers.ts'

/** Options of one entry. */
export interface EntryOptions {
  /** Seconds since 1970. Default: now. */
  readonly walltime?: number
}

/** Options of {@link TensorBoardWriter.addScalar}. */
export interface ScalarOptions extends EntryOptions {
  /** As a tensor with the plugin `scalars`, which newer versions of TensorBoard read faster. Default false. */
  readonly newStyle?: boolean
}

type Fields = readonly Uint8Array[]

/** DataType of tensorflow. */
const FLOAT = 1
const STRING = 7

/** The right ends of the bins of histograms: 0, and powers of 1.1 from 1e-12 to 1e20 in both directions. */
function binEdges(): readonly number[] {
  const edges: number[] = []
  for (let edge = 1e-12; edge < 1e20; edge *= 1.1) edges.push(edge)
  return [...edges.map((edge) => -edge).toReversed(), 0, ...edges]
}
let edges: readonly number[] | null = null

/** The message of a histogram. Throws ArgumentError for values that are not finite. */
function histogram(where: string, values: readonly number[]): Fields {
  const limits = (edges ??= binEdges())
  if (values.length === 0 || !values.every(Number.isFinite))
    throw new ArgumentError(`${where}: the values must be finite numbers, at least one, got ${values.length === 0 ? 'none' : 'NaN or an infinity'}.`)
  const counts = new Float64Array(limits.length - 1)
  for (const value of values) {
    // The bin whose left end is the last of at most the value; the last bin has its right end too.
    let [low, high] = [0, limits.length]
    while (high - low > 1) {
      const middle = (low + high) >> 1
      if ((limits[middle] ?? Infinity) <= value) low = middle
      else high = middle
    }
    if (value < (limits[0] ?? 0) || value > (limits.at(-1) ?? 0)) continue
    const bin = Math.min(low, counts.length - 1)
    counts[bin] = (counts[bin] ?? 0) + 1
  }
  const first = counts.findIndex((count) => count > 0)
  const last = counts.findLastIndex((count) => count > 0)
  // Readers see right ends only, so an empty bin before the first one says where that begins.
  const kept = first > 0 ? [...counts.subarray(first - 1, last + 1)] : [0, ...counts.subarray(0, last + 1)]
  return [
    doubleField(
      1,
      values.reduce((a, b) => Math.min(a, b)),
    ),
    doubleField(
      2,
      values.reduce((a, b) => Math.max(a, b)),
    ),
    doubleField(3, values.length),
    doubleField(
      4,
      values.reduce((a, b) => a + b, 0),
    ),
    doubleField(
      5,
      values.reduce((a, b) => a + b * b, 0),
    ),
    doublesField(6, limits.slice(first, last + 2)),
    doublesField(7, kept),
  ]
}

const plugin = (name: string): Uint8Array => bytesField(9, [bytesField(1, [bytesField(1, name)])])

/** Files of one process are numbered. */
let files = 0

const now = (): number => Date.now() / 1000

/**
 * Writes an event file of TensorBoard into a folder: `tensorboard --logdir FOLDER` shows it. PyTorch's `SummaryWriter`.
 *
 * @throws UnsupportedError where there is no file system.
 * @example
 * const writer = new TensorBoardWriter('runs/first')
 * writer.addScalar('loss', loss.item(), step)
 * writer.addHistogram('weights', model.weight, step)
 * writer.close()
 */
export class TensorBoardWriter implements Writer {
  /** The path of the file. */
  readonly path: string
  readonly #fs: Fs
  #file: number | null

  constructor(folder: string, options: EntryOptions = {}) {
    checkCount('TensorBoardWriter', arguments, 2)
    checkOptions('TensorBoardWriter', options, { walltime: 'number' })
    if (typeof folder !== 'string' || folder === '')
      throw new ArgumentError(`TensorBoardWriter: argument 'folder' must be the path of a folder, got ${valueText(folder)}.`)
    this.#fs = fileSystem('TensorBoardWriter')
    const { walltime = now() } = options
    const os = globalThis.process.getBuiltinModule('node:os')
    this.#fs.mkdirSync(folder, { recursive: true })
    this.path = `${folder}/events.out.tfevents.${Math.floor(walltime)}.${os.hostname()}.${globalThis.process.pid}.${files++}`
    this.#file = this.#fs.openSync(this.path, 'w')
    const writer = bytesField(1, 'tensorboard.summary.writer.event_file_writer')
    this.#append([doubleField(1, walltime), bytesField(3, 'brain.Event:2'), bytesField(10, [writer])])
  }

  /** A number of a step. Throws ArgumentError if it is neither a number nor a tensor with one element. PyTorch's `add_scalar`. */
  addScalar(tag: string, value: number | Tensor, step = 0, options: ScalarOptions = {}): void {
    checkMethod(this, 'addScalar', arguments, 4)
    checkOptions('TensorBoardWriter.addScalar', options, { walltime: 'number', newStyle: 'boolean' })
    const number = value instanceof Tensor ? value.item() : value
    if (typeof number !== 'number')
      throw new ArgumentError(`TensorBoardWriter.addScalar: argument 'value' must be a number or a tensor of one, got ${valueText(value)}.`)
    const content =
      options.newStyle === true ? [bytesField(8, [integerField(1, FLOAT), floatsField(5, [number])]), plugin('scalars')] : [floatField(2, number)]
    this.#summary('addScalar', tag, content, step, options)
  }

  /** Numbers that belong together, as scalars `tag/name`. PyTorch's `add_scalars`, in one file. */
  addScalars(tag: string, values: Readonly<Record<string, number | Tensor>>, step = 0, options: ScalarOptions = {}): void {
    checkMethod(this, 'addScalars', arguments, 4)
    for (const [name, value] of Object.entries(values)) this.addScalar(`${tag}/${name}`, value, step, options)
  }

  /** How the elements of a tensor are distributed. PyTorch's `add_histogram`. Throws ArgumentError if they are not finite. */
  addHistogram(tag: string, values: Tensor | readonly number[], step = 0, options: EntryOptions = {}): void {
    checkMethod(this, 'addHistogram', arguments, 4)
    checkOptions('TensorBoardWriter.addHistogram', options, { walltime: 'number' })
    const numbers = values instanceof Tensor ? Array.from(values.detach().contiguous().toTypedArray(), Number) : values
    if (!Array.isArray(numbers) || !numbers.every((one) => typeof one === 'number'))
      throw new ArgumentError(`TensorBoardWriter.addHistogram: argument 'values' must be a Tensor or an array of numbers, got ${valueText(values)}.`)
    this.#summary('addHistogram', tag, [bytesField(5, histogram('TensorBoardWriter.addHistogram', numbers))], step, options)
  }

  /** A text, in Markdown. Throws ArgumentError if it is not a string. PyTorch's `add_text`. */
  addText(tag: string, text: string, step = 0, options: EntryOptions = {}): void {
    checkMethod(this, 'addText', arguments, 4)
    checkOptions('TensorBoardWriter.addText', options, { walltime: 'number' })
    if (typeof text !== 'string') throw new ArgumentError(`TensorBoardWriter.addText: argument 'text' must be a text, got ${valueText(text)}.`)
    const shape = bytesField(2, [bytesField(2, [integerField(1, 1)])])
    const tensor = bytesField(8, [integerField(1, STRING), shape, bytesField(8, text)])
    this.#summary('addText', `${tag}/text_summary`, [tensor, plugin('text')], step, options)
  }

  /** The numbers of a report, as scalars. */
  write(step: number, report: Report): void {
    checkMethod(this, 'write', arguments, 2)
    checkReport('TensorBoardWriter.write', step, report)
    for (const [name, value] of Object.entries(report)) this.addScalar(name, value, step)
  }

  #summary(method: string, tag: string, content: Fields, step: number, { walltime = now() }: EntryOptions): void {
    if (typeof tag !== 'string' || tag === '')
      throw new ArgumentError(`TensorBoardWriter.${method}: argument 'tag' must be a text, got ${valueText(tag)}.`)
    if (!Number.isSafeInteger(step) || step < 0)
      throw new ArgumentError(`TensorBoardWriter.${method}: argument 'step' must be an integer from 0 on, got ${valueText(step)}.`)
    this.#append([doubleField(1, walltime), integerField(2, step), bytesField(5, [bytesField(1, [bytesField(1, tag), ...content])])])
  }

  #append(message: Fields): void {
    if (this.#file === null) throw new ArgumentError('TensorBoardWriter: the file is closed; make a new writer.')
    this.#fs.writeSync(this.#file, record(message))
  }

  /** Everything is on the disk. PyTorch's `flush`. */
  flush(): void {
    checkMethod(this, 'flush', arguments, 0)
    if (this.#file !== null) this.#fs.fsyncSync(this.#file)
  }

  close(): void {
    checkMethod(this, 'close', arguments, 0)
    if (this.#file === null) return
    this.flush()
    this.#fs.closeSync(this.#file)
    this.#file = null
  }
}
