// Tensors as text, in PyTorch's format: `tensor([[ 0.1000, -2.0000]])`, four decimals, at most 80 columns, summarized beyond 1000 elements.
import { complexDType, dtypeInfo, isComplexDType, realDType } from '../kernels/index.ts'
import type { DType, ElementValue } from '../kernels/index.ts'
import { pairsOf } from './complexNumbers.ts'
import { getDefaultDtype } from './defaultDType.ts'
import { exactElementAt, windowOf } from './elements.ts'
import type { Tensor } from './tensor.ts'

const PRECISION = 4
const THRESHOLD = 1000
const EDGE_ITEMS = 3
const LINE_WIDTH = 80

/** Python's `format(x, '.4f')` and `'.0f'`: halves are rounded to the even digit, whereas toFixed rounds them up. */
export function pythonFixed(x: number, digits: number): string {
  if (Number.isNaN(x)) return 'nan'
  if (!Number.isFinite(x)) return x > 0 ? 'inf' : '-inf'
  let text = Math.abs(x).toFixed(digits)
  if (
    /^50*$/.test(
      Math.abs(x)
        .toFixed(digits + 30)
        .split('.')[1]
        ?.slice(digits) ?? '',
    )
  ) {
    const last = Number(text.at(-1))
    if (last % 2 === 1) text = (Number(text) - 10 ** -digits).toFixed(digits)
  }
  return x < 0 || Object.is(x, -0) ? `-${text}` : text
}

/** Python's `format(x, '.4e')`: the exponent has at least two digits. */
export function pythonExponential(x: number, digits: number): string {
  if (!Number.isFinite(x)) return pythonFixed(x, 0)
  const text = (Object.is(x, -0) ? '-' : '') + x.toExponential(digits)
  return text.replace(/e([+-])(\d)$/, 'e$10$2')
}

/** Formats all elements the same way: as integers, as decimals or in scientific notation, padded to one width. */
class Formatter {
  width = 1
  readonly #dtype: DType
  readonly #floating: boolean
  #integers = true
  #scientific = false

  constructor(dtype: DType, exact: readonly ElementValue[]) {
    this.#dtype = dtype
    this.#floating = dtypeInfo[dtype].floating
    if (!this.#floating) {
      for (const value of exact) this.#widen(plain(dtype, value).length)
      return
    }
    const values = exact.map(Number)
    const finite = values.filter((v) => Number.isFinite(v) && v !== 0)
    if (finite.length === 0) return
    let least = Infinity
    let greatest = 0
    for (const value of finite) {
      least = Math.min(least, Math.abs(value))
      greatest = Math.max(greatest, Math.abs(value))
      if (!Number.isInteger(value)) this.#integers = false
    }
    this.#scientific = greatest / least > 1000 || greatest > 1e8 || least < 1e-4
    for (const value of finite) {
      if (this.#scientific) this.#widen(pythonExponential(value, PRECISION).length)
      else if (this.#integers) this.#widen(pythonFixed(value, 0).length + 1)
      else this.#widen(pythonFixed(value, PRECISION).length)
    }
  }

  #widen(width: number): void {
    if (width > this.width) this.width = width
  }

  format(exact: ElementValue): string {
    const value = Number(exact)
    let text: string
    if (!this.#floating) text = plain(this.#dtype, exact)
    else if (this.#scientific) text = pythonExponential(value, PRECISION)
    else if (this.#integers) text = pythonFixed(value, 0) + (Number.isFinite(value) ? '.' : '')
    else text = pythonFixed(value, PRECISION)
    return text.padStart(this.width)
  }
}

const plain = (dtype: DType, value: ElementValue): string => (dtype === 'bool' ? (value === 0 ? 'False' : 'True') : String(value))

/** The real part and then the imaginary one, with its sign and a j. */
function complexText(real: string, imaginary: string): string {
  const text = imaginary.trimStart()
  return `${real}${text.startsWith('-') ? '' : '+'}${text}j`
}

/** The width of an element, and its text by its position in the storage. */
interface ElementTexts {
  readonly width: number
  readonly at: (position: number) => string
}

/** How the elements of a tensor are written, of which those at `positions` are shown. */
function textsOf(tensor: Tensor, positions: readonly number[]): ElementTexts {
  const isComplex = isComplexDType(tensor.dtype)
  const window = windowOf(isComplex ? pairsOf(tensor) : tensor)
  const value = (position: number): ElementValue => exactElementAt(window, position)
  const format = (place: (position: number) => number): Formatter =>
    new Formatter(
      realDType(tensor.dtype),
      positions.map((position) => value(place(position))),
    )
  if (!isComplex) {
    const formatter = format((position) => position)
    return { width: formatter.width, at: (position) => formatter.format(value(position)) }
  }
  const [real, imaginary] = [format((position) => 2 * position), format((position) => 2 * position + 1)]
  return {
    width: real.width + imaginary.width + 1,
    at: (position) => complexText(real.format(value(2 * position)), imaginary.format(value(2 * position + 1))),
  }
}

/** Whether PyTorch leaves out the dtype of a tensor that shows its values: these look like bools, integers, or numbers with a point. */
const isImplied = ({ dtype }: Tensor): boolean =>
  dtype === 'bool' || dtype === 'int64' || dtype === getDefaultDtype() || dtype === complexDType(getDefaultDtype())

/** The indices of a dimension that are printed; -1 stands for the ellipsis. */
function shown(size: number, summarize: boolean): readonly number[] {
  if (!summarize || size <= 2 * EDGE_ITEMS) return Array.from({ length: size }, (_, i) => i)
  return [0, 1, 2, -1, size - 3, size - 2, size - 1]
}

function body(tensor: Tensor, indent: number): string {
  const summarize = tensor.numel > THRESHOLD
  const positions: number[] = []
  const collect = (dim: number, position: number): void => {
    const [size, stride] = [tensor.sizes[dim], tensor.steps[dim]]
    if (size === undefined || stride === undefined) positions.push(position)
    else for (const i of shown(size, summarize)) if (i >= 0) collect(dim + 1, position + i * stride)
  }
  collect(0, tensor.offset)
  const texts = textsOf(tensor, positions)
  const write = (dim: number, position: number, column: number): string => {
    const [size, stride] = [tensor.sizes[dim], tensor.steps[dim]]
    if (size === undefined || stride === undefined) return texts.at(position)
    const indices = shown(size, summarize)
    if (dim < tensor.ndim - 1) {
      const parts = indices.map((i) => (i < 0 ? '...' : write(dim + 1, position + i * stride, column + 1)))
      return `[${parts.join(`,${'\n'.repeat(tensor.ndim - dim - 1)}${' '.repeat(column + 1)}`)}]`
    }
    const parts = indices.map((i) => (i < 0 ? ' ...' : texts.at(position + i * stride)))
    const perLine = Math.max(1, Math.floor((LINE_WIDTH - column) / (texts.width + 2)))
    const lines: string[] = []
    for (let i = 0; i < parts.length; i += perLine) lines.push(parts.slice(i, i + perLine).join(', '))
    return `[${lines.join(`,\n${' '.repeat(column + 1)}`)}]`
  }
  return write(0, tensor.offset, indent)
}

const pythonTuple = (shape: readonly number[]): string => (shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(', ')})`)

/** The tensor as PyTorch prints it. A fake tensor, and one whose data is not here yet, shows its shape instead of data; a pending one is computed first. */
export function formatTensor(tensor: Tensor): string {
  const prefix = tensor.isFake ? 'FakeTensor(' : 'tensor('
  const suffixes: string[] = []
  let content = '[]'
  const isHidden = tensor.isFake || tensor.storage?.lateData?.isHere === false
  if (isHidden) content = '...'
  if (isHidden || (tensor.numel === 0 && tensor.ndim !== 1)) suffixes.push(`size=${pythonTuple(tensor.sizes)}`)
  const showsValues = !isHidden && tensor.numel > 0
  if (showsValues ? !isImplied(tensor) : tensor.dtype !== getDefaultDtype()) suffixes.push(`dtype=torch.${tensor.dtype}`)
  if (showsValues) content = body(tensor, prefix.length)
  if (tensor.gradFn !== null) suffixes.push(`grad_fn=<${tensor.gradFn.name}>`)
  else if (tensor.requiresGrad) suffixes.push('requires_grad=True')
  let text = prefix + content
  let column = text.length - text.lastIndexOf('\n') + 1
  for (const suffix of suffixes) {
    if (column + suffix.length + 2 > LINE_WIDTH) {
      text += `,\n${' '.repeat(prefix.length)}${suffix}`
      column = prefix.length + suffix.length
    } else {
      text += `, ${suffix}`
      column += suffix.length + 2
    }
  }
  return `${tensor.isParameter ? 'Parameter containing:\n' : ''}${text})`
}
