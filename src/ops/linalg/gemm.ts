// The float32 matrix product with run-time sizes: kernels for the strides that are 1, and for few rows or columns.
import {
  FEW_LINES,
  FEW_ROWS,
  PerEngine,
  at,
  bufferParam,
  call,
  compilePacked,
  compileProduct,
  compileUnpacked,
  isStrict,
  load,
  loopVar,
  packedBytes,
  packedScratchBytes,
  paysPacked,
  store,
} from '../../kernels/index.ts'
import type { Expr, GemmSpec, MatrixOperand, PackedProduct, ProductKernel, Size, Stmt } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { kernelCache, launch, scratchIfRoom } from '../eager/launch.ts'
import { launchOnCopy, packedCopy } from '../eager/packedWeights.ts'
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
/** The same for a B that is packed before. */
const plainPacked = new PerEngine(() => new Array<PackedProduct>())
const withBiasPacked = new PerEngine(() => new Array<PackedProduct>())

/** For products that have no room for scratch memory, by what is known of B. */
const unpackedKernel = kernelCache((hasBias: boolean, hasRows: boolean, hasColumns: boolean) =>
  compileUnpacked(specOf(hasBias, { ...NOTHING, b1: hasColumns ? 1 : undefined, b2: hasRows ? 1 : undefined })),
)

/** What reads packed operands in this file. */
const READER = {}

/** Runs the product with a B that was packed in an earlier call, or is packed in this one; returns false where it is not. */
function runPacked(p: Product, known: Known, operands: readonly Tensor[], sizes: readonly number[]): boolean {
  const { m, n, k, bStrides } = p
  const hasBias = p.bias !== null
  const kernels = (): PackedProduct => ((hasBias ? withBiasPacked : plainPacked).current[placeOf(known)] ??= compilePacked(specOf(hasBias, known)))
  const form = { reader: READER, numbers: [n, k, bStrides[1], bStrides[2]], bytes: packedBytes(n, k) }
  const copy = packedCopy(p.b, form, (from, to) => kernels().pack.run(from, to, ...sizes))
  return copy !== null && launchOnCopy(kernels().product, operands, sizes, { copy, position: 2 }, packedScratchBytes(m, k))
}

/** Computes a float32 product into `p.out`. */
export function float32Product(p: Product): void {
  const { bias, aStrides: sa, bStrides: sb } = p
  const known = knownOf(p)
  const hasBias = bias !== null
  const sizes = [p.batch, p.m, p.n, p.k, sa[0], sa[1], sa[2], sb[0], sb[1], sb[2], p.m * p.n, bias?.steps[0] ?? 0]
  const operands = hasBias ? [p.out, p.a, p.b, bias] : [p.out, p.a, p.b]
  if (p.batch === 1 && paysPacked(p.m, p.n, p.k) && known.m === undefined && known.n === undefined && runPacked(p, known, operands, sizes)) return
  const kernel = ((hasBias ? withBias : plain).current[placeOf(known)] ??= compileProduct(specOf(hasBias, known)))
  const scratch = scratchIfRoom(kernel.scratchBytes(p.m, p.n, p.k))
  if (scratch === null) {
    launch(unpackedKernel(hasBias, known.b2 === 1, known.b1 === 1), operands, sizes)
    return
  }
  sizes.push(scratch)
  launch(kernel.compiled, operands, sizes)
}
