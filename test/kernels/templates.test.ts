// The matrix and convolution templates on the heap, against plain loops in JavaScript: sizes around their tiles, layouts, epilogues, and memory: nothing outside
// the result and the scratch memory may change.
import { afterEach, describe, expect, test } from 'vitest'
import {
  allocate,
  at,
  bufferParam,
  call,
  cast,
  directConvWeight,
  compileGemm,
  compileProduct,
  constant,
  free,
  gemmScratchBytes,
  heapBytes,
  heapView,
  kernelCacheStats,
  load,
  loopVar,
  sizeParam,
  store,
} from '../../src/kernels/index.ts'
import type { CompiledKernel, ConvGather, Expr, GemmSpec, Param, Stmt, SpareKernel } from '../../src/kernels/index.ts'

const GUARD = 256
let taken: { address: number; bytes: number }[] = []

/** Memory between guards, filled with a pattern. */
function memory(bytes: number): number {
  const whole = bytes + 2 * GUARD
  const address = allocate(whole)
  heapBytes().fill(0xa5, address, address + whole)
  taken.push({ address, bytes })
  return address + GUARD
}

function floats(values: readonly number[]): number {
  const address = memory(values.length * 4)
  heapView('float32').set(values, address / 4)
  return address
}

/** Small whole numbers: sums are exact in any order. */
const numbers = (count: number, salt: number): number[] => Array.from({ length: count }, (_, k) => ((Math.imul(k + salt, 2654435761) >>> 9) % 9) - 4)
const range = (count: number): number[] => Array.from({ length: count }, (_, k) => k)

afterEach(() => {
  for (const { address, bytes } of taken) {
    const untouched = (from: number): boolean =>
      heapBytes()
        .subarray(from, from + GUARD)
        .every((byte) => byte === 0xa5)
    expect([untouched(address), untouched(address + GUARD + bytes)]).toEqual([true, true])
    free(address, bytes + 2 * GUARD)
  }
  taken = []
})

const [out, a, b, bias] = [
  bufferParam('out', 'float32', 'readwrite'),
  bufferParam('a', 'float32'),
  bufferParam('b', 'float32'),
  bufferParam('bias', 'float32'),
]
const scratch = bufferParam('scratch', 'float32', 'readwrite')

const run = ({ run: kernel }: CompiledKernel, args: readonly number[], scratchBytes: number): void => kernel(...args, memory(scratchBytes))
const result = (address: number, count: number): number[] => Array.from(heapView('float32').slice(address / 4, address / 4 + count))

describe('the matrix product', () => {
  interface Sizes {
    readonly batch: number
    readonly m: number
    readonly n: number
    readonly k: number
  }

  // Sizes and strides are parameters of each call.
  const s = {
    batch: sizeParam('batch'),
    m: sizeParam('m'),
    n: sizeParam('n'),
    k: sizeParam('k'),
    a0: sizeParam('a0'),
    aRow: sizeParam('aRow'),
    aCol: sizeParam('aCol'),
    b0: sizeParam('b0'),
    bRow: sizeParam('bRow'),
    bCol: sizeParam('bCol'),
  }
  const [batchLoop, rows, cols] = [loopVar('batch', s.batch), loopVar('row', s.m), loopVar('col', s.n)]
  const c0 = sizeParam('c0')
  const dynamicSpec = (reduceBatch: number): GemmSpec => ({
    name: 'product',
    batch: [batchLoop],
    rows,
    cols,
    depth: s.k,
    a: { buffer: a, rowStride: s.aRow, colStride: s.aCol, batchStrides: [s.a0] },
    b: { buffer: b, rowStride: s.bRow, colStride: s.bCol, batchStrides: [s.b0] },
    reduceBatch,
    epilogue: (acc) => [store(out, reduceBatch === 0 ? at([batchLoop, c0], [rows, s.n], [cols, 1]) : at([rows, s.n], [cols, 1]), acc)],
    params: [out, a, b, c0, ...Object.values(s), scratch],
  })

  /** The product in JavaScript. */
  function product({ batch, m, n, k }: Sizes, x: readonly number[], y: readonly number[], layout: readonly number[], sum: boolean): number[] {
    const [a0 = 0, aRow = 0, aCol = 0, b0 = 0, bRow = 0, bCol = 0] = layout
    const one = (p: number, i: number, j: number): number =>
      range(k).reduce((total, q) => total + (x[p * a0 + i * aRow + q * aCol] ?? NaN) * (y[p * b0 + q * bRow + j * bCol] ?? NaN), 0)
    const all = (p: number): number[] => range(m).flatMap((i) => range(n).map((j) => one(p, i, j)))
    const products = range(batch).map(all)
    return sum ? range(m * n).map((e) => products.reduce((total, own) => total + (own[e] ?? NaN), 0)) : products.flat()
  }

  const SHAPES: readonly (readonly [number, number, number])[] = [
    [1, 1, 1],
    [4, 8, 4],
    [3, 7, 5],
    [5, 9, 1],
    [8, 33, 6],
    [13, 4, 9],
    [9, 131, 3],
    [2, 16, 0],
    [0, 5, 2],
    [5, 0, 2],
  ]

  for (const sum of [false, true]) {
    test(`is right for sizes around its tile${sum ? ', summed over the batch' : ' and for each of a batch'}, with any operand transposed`, () => {
      const { compiled, scratchBytes } = compileProduct(dynamicSpec(sum ? 1 : 0))
      for (const [m, n, k] of SHAPES) {
        for (const batch of [1, 3]) {
          for (const turned of [0, 1, 2, 3]) {
            const [x, y] = [numbers(batch * m * k, 1), numbers(batch * k * n, 2)]
            const layout = [m * k, ...((turned & 1) === 0 ? [k, 1] : [1, m]), k * n, ...((turned & 2) === 0 ? [n, 1] : [1, k])]
            const count = (sum ? 1 : batch) * m * n
            const target = floats(range(count).map(() => 77))
            run(compiled, [target, floats(x), floats(y), m * n, batch, m, n, k, ...layout], scratchBytes(m, n, k))
            const expected = product({ batch, m, n, k }, x, y, layout, sum)
            expect(result(target, count), `${m} ${n} ${k} ${batch} ${turned}`).toEqual(expected)
          }
        }
      }
    })
  }

  test('broadcasts an operand over the batch, and packs it once', () => {
    const epilogue = (acc: Expr): Stmt[] => [store(out, at([images, 6], [fixedRows, 3], [fixedCols, 1]), acc)]
    const [images, fixedRows, fixedCols] = [loopVar('image', 2), loopVar('r', 2), loopVar('c', 3)]
    const operand = (batchStrides: readonly number[]) => ({ rowStride: 4, colStride: 1, batchStrides })
    for (const [left, right] of [
      [0, 12],
      [8, 0],
      [0, 0],
    ] as const) {
      const spec: GemmSpec = {
        name: 'broadcast',
        batch: [images],
        rows: fixedRows,
        cols: fixedCols,
        depth: 4,
        a: { ...operand([left]), buffer: a },
        b: { rowStride: 3, colStride: 1, batchStrides: [right], buffer: b },
        reduceBatch: 0,
        epilogue,
        params: [out, a, b, scratch],
      }
      const [x, y] = [numbers(16, 3), numbers(24, 4)]
      const target = floats(numbers(12, 0))
      const { compiled, scratchBytes } = compileProduct(spec)
      run(compiled, [target, floats(x), floats(y)], scratchBytes(2, 3, 4))
      expect(result(target, 12)).toEqual(product({ batch: 2, m: 2, n: 3, k: 4 }, x, y, [left, 4, 1, right, 3, 1], false))
    }
  })

  const fixed = (epilogue: (acc: Expr) => readonly Stmt[], params: readonly Param[]): GemmSpec => ({
    name: 'fixed',
    batch: [],
    rows: loopVar('r', 5),
    cols: loopVar('c', 11),
    depth: 3,
    a: { buffer: a, rowStride: 3, colStride: 1, batchStrides: [] },
    b: { buffer: b, rowStride: 11, colStride: 1, batchStrides: [] },
    reduceBatch: 0,
    epilogue,
    params: [...params, scratch],
  })

  test('passes each element through the epilogue, in vectors or, with float64, one at a time', () => {
    const [x, y, biases] = [numbers(15, 5), numbers(33, 6), numbers(11, 7)]
    const plain = product({ batch: 1, m: 5, n: 11, k: 3 }, x, y, [0, 3, 1, 0, 11, 1], false)
    for (const wide of [true, false]) {
      const [r, c] = [loopVar('r', 5), loopVar('c', 11)]
      const added = (acc: Expr): Expr => call('add', acc, load(bias, at([c, 1])))
      const value = (acc: Expr): Expr => (wide ? added(acc) : cast(call('mul', cast(added(acc), 'float64'), constant('float64', 1)), 'float32'))
      const spec = {
        ...fixed((acc) => [store(out, at([r, 11], [c, 1]), call('max', value(acc), constant('float32', 0)))], [out, a, b, bias]),
        rows: r,
        cols: c,
      }
      const target = floats(range(55).map(() => 77))
      const { compiled, scratchBytes } = compileProduct(spec)
      run(compiled, [target, floats(x), floats(y), floats(biases)], scratchBytes(5, 11, 3))
      expect(result(target, 55)).toEqual(plain.map((value_, e) => Math.max(0, value_ + (biases[e % 11] ?? NaN))))
    }
  })

  test('is compiled once for a problem, and again for another epilogue or layout', () => {
    const [r, c] = [loopVar('r', 5), loopVar('c', 11)]
    const spec = (factor: number, colStride = 1): GemmSpec => ({
      ...fixed((acc) => [store(out, at([r, 11], [c, 1]), call('mul', acc, constant('float32', factor)))], [out, a, b]),
      rows: r,
      cols: c,
      a: { buffer: a, rowStride: 3, colStride, batchStrides: [] },
    })
    const first = compileProduct(spec(3)).compiled
    const { compiled } = kernelCacheStats()
    expect(compileProduct(spec(3)).compiled).toBe(first)
    expect(kernelCacheStats().compiled).toBe(compiled)
    expect(compileProduct(spec(4)).compiled).not.toBe(first)
    expect(compileProduct(spec(3, 2)).compiled).not.toBe(first)
    expect(kernelCacheStats().compiled).toBe(compiled + 2)
  })
})

interface Conv {
  readonly batch: number
  readonly channels: number
  readonly features: number
  readonly height: number
  readonly width: number
  readonly window: readonly [number, number]
  readonly pad: readonly [number, number]
  readonly stride?: number
  readonly dilation?: number
}

const geometry = ({ height, width, window: [kh, kw], pad: [ph, pw], stride = 1, dilation = 1 }: Conv): { oh: number; ow: number } => ({
  oh: Math.floor((height + 2 * ph - dilation * (kh - 1) - 1) / stride) + 1,
  ow: Math.floor((width + 2 * pw - dilation * (kw - 1) - 1) / stride) + 1,
})

function gatherOf(conv: Conv, swapped: boolean): ConvGather {
  const { channels, height, width, window, pad, stride = 1, dilation = 1 } = conv
  const { oh, ow } = geometry(conv)
  return {
    channels,
    height,
    width,
    kernelHeight: window[0],
    kernelWidth: window[1],
    outHeight: oh,
    outWidth: ow,
    strideH: stride,
    strideW: stride,
    padH: pad[0],
    padW: pad[1],
    dilationH: dilation,
    dilationW: dilation,
    channelStride: height * width,
    rowStride: width,
    colStride: 1,
    transposed: false,
    swapped,
  }
}

/** Calls `visit` for each product of a pixel and a weight, with their positions and that of the result. */
function eachProduct(conv: Conv, visit: (result: number, pixel: number, weight: number, image: number) => void): void {
  const {
    batch,
    channels,
    features,
    height,
    width,
    window: [kh, kw],
    pad: [ph, pw],
    stride = 1,
    dilation = 1,
  } = conv
  const { oh, ow } = geometry(conv)
  for (const n of range(batch))
    for (const o of range(features))
      for (const y of range(oh))
        for (const x of range(ow))
          for (const c of range(channels))
            for (const ky of range(kh))
              for (const kx of range(kw)) {
                const [iy, ix] = [y * stride + ky * dilation - ph, x * stride + kx * dilation - pw]
                if (iy < 0 || ix < 0 || iy >= height || ix >= width) continue
                visit(
                  ((n * features + o) * oh + y) * ow + x,
                  ((n * channels + c) * height + iy) * width + ix,
                  ((o * channels + c) * kh + ky) * kw + kx,
                  n,
                )
              }
}

const CONVOLUTIONS: readonly (readonly [string, Conv, boolean])[] = [
  ['whole tiles', { batch: 2, channels: 2, features: 4, height: 4, width: 8, window: [3, 3], pad: [1, 1] }, true],
  ['features past the last tile', { batch: 1, channels: 3, features: 5, height: 3, width: 8, window: [3, 3], pad: [1, 1] }, true],
  ['a window that is higher than wide', { batch: 2, channels: 1, features: 2, height: 5, width: 8, window: [3, 1], pad: [1, 0] }, true],
  ['no padding', { batch: 1, channels: 2, features: 3, height: 4, width: 9, window: [2, 2], pad: [0, 0] }, true],
  ['more padding than the window reads', { batch: 1, channels: 1, features: 4, height: 2, width: 5, window: [2, 2], pad: [2, 2] }, true],
  [
    'wide images, copied in vectors and single pixels',
    { batch: 1, channels: 1, features: 1, height: 2, width: 70, window: [1, 3], pad: [0, 0] },
    true,
  ],
  ['a stride', { batch: 2, channels: 2, features: 3, height: 6, width: 8, window: [3, 3], pad: [1, 1], stride: 2 }, false],
  ['a dilation', { batch: 1, channels: 2, features: 3, height: 6, width: 8, window: [3, 3], pad: [2, 2], dilation: 2 }, false],
  ['rows that are no whole vectors', { batch: 2, channels: 2, features: 4, height: 5, width: 7, window: [3, 3], pad: [1, 1] }, false],
  ['a window too large to unroll', { batch: 1, channels: 1, features: 1, height: 6, width: 8, window: [5, 6], pad: [2, 0] }, false],
]

describe.each(CONVOLUTIONS)('convolutions with %s', (_, conv, isDirect) => {
  const {
    batch,
    channels,
    features,
    height,
    width,
    window: [kh, kw],
  } = conv
  const { oh, ow } = geometry(conv)
  const depth = channels * kh * kw
  const [pixels, weights] = [numbers(batch * channels * height * width, 1), numbers(features * depth, 2)]
  const images = loopVar('image', batch)

  test('are right as products with the gathered image', () => {
    const [rows, cols] = [loopVar('o', features), loopVar('p', oh * ow)]
    const spec: GemmSpec = {
      name: 'conv',
      batch: [images],
      rows,
      cols,
      depth,
      a: { buffer: a, rowStride: depth, colStride: 1, batchStrides: [0] },
      b: { buffer: b, rowStride: 0, colStride: 0, batchStrides: [channels * height * width], gather: gatherOf(conv, false) },
      reduceBatch: 0,
      epilogue: (acc) => [store(out, at([images, features * oh * ow], [rows, oh * ow], [cols, 1]), call('add', acc, load(bias, at([rows, 1]))))],
      params: [out, a, b, bias, scratch],
    }
    const biases = numbers(features, 3)
    const expected = range(batch * features * oh * ow).map((e) => biases[Math.floor(e / (oh * ow)) % features] ?? NaN)
    eachProduct(conv, (at_, pixel, weight) => (expected[at_] = (expected[at_] ?? NaN) + (pixels[pixel] ?? NaN) * (weights[weight] ?? NaN)))
    const target = floats(expected.map(() => 77))
    run(compileGemm(spec), [target, floats(weights), floats(pixels), floats(biases)], gemmScratchBytes(features, oh * ow, depth))
    expect(result(target, expected.length)).toEqual(expected)
  })

  test('have the right weight gradient, both ways', () => {
    const [rows, cols] = [loopVar('o', features), loopVar('w', depth)]
    const spec: GemmSpec = {
      name: 'weight',
      batch: [images],
      rows,
      cols,
      depth: oh * ow,
      a: { buffer: a, rowStride: oh * ow, colStride: 1, batchStrides: [features * oh * ow] },
      b: { buffer: b, rowStride: 0, colStride: 0, batchStrides: [channels * height * width], gather: gatherOf(conv, true) },
      reduceBatch: 1,
      epilogue: (acc) => [store(out, at([rows, depth], [cols, 1]), call('mul', acc, constant('float32', 2)))],
      params: [out, a, b, scratch],
    }
    const grads = numbers(batch * features * oh * ow, 4)
    const expected = range(features * depth).map(() => 0)
    eachProduct(conv, (at_, pixel, weight) => (expected[weight] = (expected[weight] ?? NaN) + 2 * (pixels[pixel] ?? NaN) * (grads[at_] ?? NaN)))
    const direct = directConvWeight(spec)
    expect(direct !== null).toBe(isDirect)
    const gathered: SpareKernel = { compile: () => compileGemm(spec), scratchBytes: gemmScratchBytes(features, depth, oh * ow) }
    for (const kernel of direct === null ? [gathered] : [direct, gathered]) {
      const target = floats(expected.map(() => 77))
      run(kernel.compile(), [target, floats(grads), floats(pixels)], kernel.scratchBytes)
      expect(result(target, expected.length)).toEqual(expected)
    }
  })
})

describe('the direct gradient of weights', () => {
  const conv: Conv = { batch: 2, channels: 1, features: 2, height: 4, width: 8, window: [3, 3], pad: [1, 1] }
  const [images, rows, cols] = [loopVar('image', 2), loopVar('o', 2), loopVar('w', 9)]
  const gather = gatherOf(conv, true)
  const spec: GemmSpec = {
    name: 'weight',
    batch: [images],
    rows,
    cols,
    depth: 32,
    a: { buffer: a, rowStride: 32, colStride: 1, batchStrides: [64] },
    b: { buffer: b, rowStride: 0, colStride: 0, batchStrides: [32], gather },
    reduceBatch: 1,
    epilogue: (acc) => [store(out, at([rows, 9], [cols, 1]), acc)],
    params: [out, a, b, scratch],
  }
  const size = sizeParam('s')
  const others: readonly (readonly [string, Partial<GemmSpec>])[] = [
    ['a matrix instead of an image', { b: { buffer: b, rowStride: 0, colStride: 0, batchStrides: [32] } }],
    ['a size of each call', { rows: loopVar('o', size) }],
    ['a number of columns of each call', { cols: loopVar('w', size) }],
    ['a depth of each call', { depth: size }],
    ['a number of images of each call', { batch: [loopVar('image', size)] }],
    ['a stride of each call', { a: { ...spec.a, rowStride: size } }],
    ['a column stride of each call', { a: { ...spec.a, colStride: size } }],
    ['gradients whose pixels are not neighbours', { a: { ...spec.a, colStride: 2 } }],
    ['an image stride of each call', { b: { ...spec.b, batchStrides: [size] } }],
    ['an image size of each call', { b: { ...spec.b, gather: { ...gather, height: size } } }],
    ['two batch loops', { batch: [images, loopVar('g', 1)] }],
    ['no batch loop', { batch: [] }],
    ['no images', { batch: [loopVar('image', 0)] }],
    ['no features', { rows: loopVar('o', 0) }],
    ['the transposed form', { b: { ...spec.b, gather: { ...gather, transposed: true } } }],
    ['pixels that are not neighbours', { b: { ...spec.b, gather: { ...gather, colStride: 2 } } }],
    ['a stride along one side', { b: { ...spec.b, gather: { ...gather, strideW: 2 } } }],
    ['a dilation along one side', { b: { ...spec.b, gather: { ...gather, dilationH: 2 } } }],
    ['the matrix that is not swapped', { b: { ...spec.b, gather: gatherOf(conv, false) } }],
    ['a product of each image', { reduceBatch: 0 }],
  ]

  test('takes the plain problem', () => expect(directConvWeight(spec)).not.toBeNull())

  test.each(others)('leaves %s to the product', (_, change) => {
    expect(directConvWeight({ ...spec, ...change })).toBeNull()
  })
})
