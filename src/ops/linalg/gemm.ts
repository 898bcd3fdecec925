// The float32 matrix product with run-time sizes: kernels for the strides that are 1, and for few rows or columns.
import {
  FEW_LINES,
  FEW_ROWS,
  OutOfMemoryError,
  PerEngine,
  at,
  bufferParam,
  call,
  compileProduct,
  compileUnpacked,
  isStrict,
  load,
  loopVar,
  store,
} from '../../kernels/index.ts'
import type { Expr, GemmSpec, MatrixOperand, ProductKernel, Size, Stmt } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { kernelCache, launch, scratchMemory } from '../eager/launch.ts'
import { sizeParams } from '../eager/sizes.ts'

/** out[batch, i, j] = sum over k of a[batch, i, k] * b[batch, k, j] + bias[j]. Strides are in elements; `out` is contiguous. */
export interface Product {
  readonly out: Tensor
  readonly a: Tensor
  readonly b: Tensor
  readonly bias: Tensor | null
  readonly batch: number
  readonly m: number
  readonly n: number
  readonly k: number
  /** [batch, row, column] strides. */
  readonly aStrides: readonly [number, number, number]
  readonly bStrides: readonly [number, number, number]
}

/** What a kernel knows of a product when it is written: a size, and strides that are 1. */
interface Known {
  readonly m: number | undefined
  readonly n: number | undefined
  /** The strides of A along columns and along rows, and those of B along rows and along columns, as far as they are 1. */
  readonly a2: 1 | undefined
  readonly a1: 1 | undefined
  readonly b1: 1 | undefined
  readonly b2: 1 | undefined
}

const NOTHING: Known = { m: undefined, n: undefined, a2: undefined, a1: undefined, b1: undefined, b2: undefined }

function specOf(hasBias: boolean, known: Known): GemmSpec {
  // In the order in which float32Product passes them.
  const s = sizeParams(['batch', 'm', 'n', 'k', 'a0', 'a1', 'a2', 'b0', 'b1', 'b2', 'o0', 'biasStride'])
  const size = (name: keyof Known): Size => known[name] ?? s[name]
  const out = bufferParam('out', 'float32', 'write')
  const bias = bufferParam('bias', 'float32')
  const [batch, rows, cols] = [loopVar('batch', s.batch), loopVar('i', size('m')), loopVar('j', size('n'))]
  const a: MatrixOperand = { buffer: bufferParam('a', 'float32'), rowStride: size('a1'), colStride: size('a2'), batchStrides: [s.a0] }
  const b: MatrixOperand = { buffer: bufferParam('b', 'float32'), rowStride: size('b1'), colStride: size('b2'), batchStrides: [s.b0] }
  const epilogue = (acc: Expr): readonly Stmt[] => [
    store(out, at([batch, s.o0], [rows, size('n')], [cols, 1]), hasBias ? call('add', acc, load(bias, at([cols, s.biasStride]))) : acc),
  ]
  return {
    name: hasBias ? 'matmul_bias' : 'matmul',
    batch: [batch],
    rows,
    cols,
    depth: s.k,
    a,
    b,
    reduceBatch: 0,
    epilogue,
    params: [out, a.buffer, b.buffer, ...(hasBias ? [bias] : []), ...Object.values(s), bufferParam('scratch', 'float32', 'readwrite')],
  }
}

const isFew = (lines: number, most: number): boolean => lines >= 1 && lines <= most
const one = (stride: number): 1 | undefined => (stride === 1 ? 1 : undefined)

/** What is known of a product: one stride of each operand that is 1, where there is one, and how many rows or columns there are if they are few and a schedule takes them. */
function knownOf({ m, n, aStrides: [, a1, a2], bStrides: [, b1, b2] }: Product): Known {
  const fewRows = ((b1 === 1 && isFew(m, FEW_ROWS)) || (b2 === 1 && isFew(m, FEW_LINES))) && !isStrict()
  const fewColumns = !fewRows && isFew(n, FEW_LINES) && (a1 === 1 || a2 === 1) && !isStrict()
  return {
    m: fewRows ? m : undefined,
    n: fewColumns ? n : undefined,
    a2: one(a2),
    a1: a2 === 1 ? undefined : one(a1),
    b1: one(b1),
    b2: b1 === 1 ? undefined : one(b2),
  }
}

/** Where the kernel of a product is in the list: a number for each that {@link knownOf} can return. */
const placeOf = ({ m, n, a1, a2, b1, b2 }: Known): number =>
  (m ?? (n === undefined ? 0 : FEW_ROWS + n)) + (FEW_ROWS + FEW_LINES + 1) * ((a1 ?? 0) + 2 * (a2 ?? 0) + 4 * (b1 ?? 0) + 8 * (b2 ?? 0))

/** Kernels without and with a bias, by {@link placeOf}. */
const plain = new PerEngine(() => new Array<ProductKernel>())
const withBias = new PerEngine(() => new Array<ProductKernel>())

/** For products that have no room for scratch memory, of any strides. */
const unpackedKernel = kernelCache((hasBias: boolean) => compileUnpacked(specOf(hasBias, NOTHING)))

/** Computes a float32 product into `p.out`. */
export function float32Product(p: Product): void {
  const { bias, aStrides: sa, bStrides: sb } = p
  const known = knownOf(p)
  const hasBias = bias !== null
  const kernel = ((hasBias ? withBias : plain).current[placeOf(known)] ??= compileProduct(specOf(hasBias, known)))
  const sizes = [p.batch, p.m, p.n, p.k, sa[0], sa[1], sa[2], sb[0], sb[1], sb[2], p.m * p.n, bias?.steps[0] ?? 0]
  const operands = hasBias ? [p.out, p.a, p.b, bias] : [p.out, p.a, p.b]
  try {
    sizes.push(scratchMemory(kernel.scratchBytes(p.m, p.n, p.k)))
  } catch (error) {
    if (!(error instanceof OutOfMemoryError)) throw error
    launch(unpackedKernel(hasBias), operands, sizes)
    return
  }
  launch(kernel.compiled, operands, sizes)
}
