// toOnnx, checked by onnxruntime-web: the samples, and the value cases of every operator.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor as TensorType } from 'tensorfx'
import { makeFx } from 'tensorfx/aot'
import { GraphModule, symbolicTrace } from 'tensorfx/fx'
import { toOnnx } from 'tensorfx/interop/onnx'
import type { OnnxModel } from 'tensorfx/interop/onnx'
import { BatchNorm1d, F, Linear, Module } from 'tensorfx/nn'
import type { OpDef } from 'tensorfx/ops'
import * as ort from 'onnxruntime-web'
import { samples, variants } from '../fx/samples/all.ts'
import { run, traced } from '../fx/samples/harness.ts'
import { builtInOps } from '../ops/builtInOps.ts'
import { allValueCases } from '../ops/valueCases.ts'
import type { ValueCase } from '../ops/valueCases.ts'
import { graphOf, runModel, sameTensors, tensorsIn } from './onnxModels.ts'
import { tenth, third } from '../helpers/rotation.ts'

const messageOf = (fn: () => unknown): string => {
  try {
    fn()
    return ''
  } catch (error) {
    return String(error)
  }
}

describe('onnxruntime computes what eager computes', () => {
  const all = [...samples.map((s) => ({ ...s, name: s.golden })), ...variants].filter(({ name, inputs }) => {
    // Two of the concrete arguments are checked against the example inputs, which leave them out: these programs run nowhere.
    return inputs !== null && name !== 'concrete_args' && name !== 'concrete_args.none_arg'
  })

  it('for at least 22 samples', () => expect(all.length).toBeGreaterThanOrEqual(22))

  it.each(third(all))('for the sample $name', async (sample) => {
    const inputs = (): readonly unknown[] => sample.inputs?.() ?? []
    const gm = traced(sample)
    const { differences } = sameTensors(tensorsIn(run(gm, inputs())), await runModel(toOnnx(gm, { inputs: inputs() }), inputs()), 1e-4)
    expect(differences).toEqual([])
  })
})

/** Operators that cannot be exported, by reason. */
const NOT_EXPORTED: Readonly<Record<string, readonly string[]>> = {
  'ONNX has no such function':
    `special.i0e special.i1 special.i1e special.bessel_j0 special.bessel_j1 special.bessel_y0 special.bessel_y1 special.modified_bessel_i0
    special.modified_bessel_i1 special.modified_bessel_k0 special.modified_bessel_k1 special.scaled_modified_bessel_k0 special.scaled_modified_bessel_k1
    special.chebyshev_polynomial_t special.chebyshev_polynomial_u special.chebyshev_polynomial_v special.chebyshev_polynomial_w special.shifted_chebyshev_polynomial_t
    special.shifted_chebyshev_polynomial_u special.shifted_chebyshev_polynomial_v special.shifted_chebyshev_polynomial_w special.hermite_polynomial_h
    special.hermite_polynomial_he special.laguerre_polynomial_l special.legendre_polynomial_p special.airy_ai special.erfcx special.ndtri special.ndtr special.log_ndtr special.zeta i0 igamma igammac
    atan2 arctan2 erfc erfinv lgamma digamma polygamma Tensor.polygamma mvlgamma gcd lcm bitwise_left_shift bitwise_right_shift kaiser_window searchsorted bucketize isin histogram nn.functional.embedding_bag ops.tensorfx.places`.split(
      /\s+/,
    ),
  'ONNX has no linear algebra beyond products':
    `linalg.cholesky linalg.qr linalg.eigh linalg.eigvalsh linalg.svd linalg.svdvals linalg.lu linalg.solve linalg.solve_triangular
    linalg.inv inverse linalg.slogdet slogdet linalg.det det logdet linalg.matrix_exp matrix_exp linalg.pinv ops.tensorfx.pseudo_inverse linalg.lu_factor linalg.lu_factor_ex
    ops.tensorfx.row_order lu lu_solve lu_unpack linalg.lu_solve linalg.solve_ex linalg.inv_ex linalg.matrix_norm linalg.norm norm linalg.cond linalg.matrix_rank
    linalg.matrix_power linalg.tensorinv linalg.tensorsolve linalg.lstsq cholesky_solve cholesky_inverse ops.tensorfx.solve_matrix ops.tensorfx.triangular_solve
    cholesky qr svd pinverse triangular_solve linalg.cholesky_ex geqrf linalg.ldl_factor linalg.ldl_factor_ex linalg.ldl_solve`.split(/\s+/),
  'it has kernels of its own for gradients': `ops.tensorfx.convolution_backward ops.tensorfx.embedding_backward ops.tensorfx.max_pool2d_backward
    ops.tensorfx.avg_pool2d_backward ops.tensorfx.refused_gradient`.split(/\s+/),
  'the shape depends on data':
    `repeat_interleave nn.functional.one_hot bincount unique unique_consecutive nonzero argwhere masked_select masked_scatter index
    nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d ops.tensorfx.nonzero_rows`.split(/\s+/),
  'it is random':
    `svd_lowrank pca_lowrank rand randn randint randint_like randperm rand_like randn_like bernoulli multinomial poisson normal ops.tensorfx.poisson_quantiles ops.tensorfx.gamma_slope ops.tensorfx.beta_slope ops.tensorfx.gamma_samples ops.tensorfx.dirichlet_samples nn.functional.rrelu rrelu nn.functional.dropout1d nn.functional.dropout3d nn.functional.alpha_dropout alpha_dropout ops.tensorfx.philox_uniform ops.tensorfx.philox_normal
    ops.tensorfx.philox_integer ops.tensorfx.philox_permutation ops.tensorfx.philox_bits`.split(/\s+/),
  'the positions depend on data': ['nonzero_static'],
  'it writes to its argument': ['Tensor.zero_', 'zero_', '_batch_norm_with_update'],
}
/** Operators some of whose cases onnxruntime does not run, or computes otherwise. */
const OTHERWISE: Readonly<Record<string, readonly string[]>> = {
  'onnxruntime has no kernel for the dtype': ['nn.functional.conv2d', 'conv2d', 'ops.tensorfx.to_copy', 'Tensor.bfloat16'],
  'onnxruntime leaves NaN out of a maximum and does not sort it': ['amax', 'sort', 'median', 'nanmedian', 'nanquantile'],
  'division by zero and infinity': ['floor_divide'],
  'onnxruntime does not reshape empty tensors': ['Tensor.repeat'],
}
const named = (lists: Readonly<Record<string, readonly string[]>>): Map<string, string> =>
  new Map(Object.entries(lists).flatMap(([reason, names]) => names.map((name) => [`torch.${name}`, reason] as const)))

describe('the value cases of every operator', async () => {
  const cases = await allValueCases()
  const operators = builtInOps().filter((op) => op.functional === null && !op.tags.has('mutates') && cases.has(op.qualname))
  const [refused, otherwise] = [named(NOT_EXPORTED), named(OTHERWISE)]
  const exported = operators.filter(({ qualname }) => !refused.has(qualname) && !otherwise.has(qualname))

  it('are exported for at least 370 operators', () => expect(exported.length).toBeGreaterThanOrEqual(370))

  const exportCase = (op: OpDef, one: ValueCase): { model: OnnxModel; inputs: readonly TensorType[]; want: readonly TensorType[] } => {
    const { gm, inputs } = graphOf(op, one.args)
    return { model: toOnnx(gm, { inputs }), inputs, want: tensorsIn(gm.call(...inputs)) }
  }

  it.each(
    tenth(
      exported.map((op) => [op.qualname, op] as const),
      ([name]) => name,
    ),
  )('%s in onnxruntime is what it is eagerly', async (name, op) => {
    for (const one of cases.get(name) ?? []) {
      const { model, inputs, want } = exportCase(op, one)
      // oxlint-disable-next-line no-await-in-loop -- one session at a time
      expect(sameTensors(want, await runModel(model, inputs), 1e-5).differences).toEqual([])
    }
  })

  it.each(
    operators.flatMap((op) =>
      op.onnx !== null && typeof op.onnx === 'object' && 'none' in op.onnx ? [[op.qualname, op.onnx.none, op] as const] : [],
    ),
  )('%s is refused with the reason that it declares: %s', (name, reason, op) => {
    expect(refused.has(name)).toBe(true)
    const [one] = cases.get(name) ?? []
    expect(one).toBeDefined()
    if (one !== undefined) expect(messageOf(() => exportCase(op, one))).toContain(reason)
  })

  it.each(operators.flatMap((op) => (refused.has(op.qualname) ? [[op.qualname, refused.get(op.qualname), op] as const] : [])))(
    '%s is refused, because %s',
    (name, _, op) => {
      const errors = (cases.get(name) ?? []).map((one) => messageOf(() => exportCase(op, one))).filter((message) => message !== '')
      expect(errors.length).toBeGreaterThan(0)
      // The error names a node of the graph.
      for (const message of errors) expect(message).toMatch(/%\w+/)
    },
  )
})

class Small extends Module {
  linear: Linear = new Linear(4, 3)
  norm: BatchNorm1d = new BatchNorm1d(3)

  override forward(x: TensorType): TensorType {
    return this.norm.call(this.linear.call(x)).relu()
  }
}

describe('toOnnx', () => {
  const x = torch.tensor([[1, 2, 3, 4]])

  it('keeps the names of weights and says where nodes come from', () => {
    const { model, inputs, outputs, operators } = toOnnx(symbolicTrace(new Small().eval()), { inputs: [x], opset: 20 })
    const text = new TextDecoder('latin1').decode(model)
    for (const name of ['linear.weight', 'linear.bias', 'norm.runningMean', '%linear (call_module linear)', 'tensorfx']) expect(text).toContain(name)
    expect(inputs).toEqual([{ name: 'x', shape: [1, 4], dtype: 'float32' }])
    expect(outputs.map(({ name, shape }) => [name, shape])).toEqual([['output_0', [1, 3]]])
    expect(operators.get('Gemm')).toBe(1)
  })

  it('leaves out what the outputs do not need: the positions of a maximum, and operators that nothing reads', () => {
    const images = torch.randn([1, 1, 4, 4])
    const values = toOnnx(
      symbolicTrace((a: TensorType) => {
        torch.exp(a)
        return F.maxPool2d(a, 2)
      }),
      { inputs: [images] },
    )
    expect([...values.operators.keys()].filter((type) => type !== 'Reshape')).toEqual(['MaxPool', 'Identity'])
    const positions = toOnnx(
      symbolicTrace((a: TensorType) => F.maxPool2d(a, 2, { returnIndices: true })),
      { inputs: [images] },
    )
    expect([...positions.operators.keys()]).toContain('Mod')
  })

  it('puts weights beside the model, where onnxruntime finds them', async () => {
    const gm = symbolicTrace(new Small().eval())
    const { model, weights, outputs } = toOnnx(gm, { inputs: [x], weights: { file: 'small.data' } })
    // Four values of the normalization, a matrix and a bias.
    expect(weights?.length).toBe(4 * (3 * 4 + 3 + 3 * 4))
    expect(new TextDecoder('latin1').decode(model)).toContain('small.data')
    const session = await ort.InferenceSession.create(model, { externalData: [{ path: 'small.data', data: weights ?? new Uint8Array() }] })
    const result = await session.run({ x: new ort.Tensor('float32', Float32Array.from([1, 2, 3, 4]), [1, 4]) })
    const got = result[outputs[0]?.name ?? '']?.data as Float32Array
    const want = (gm.call(x) as TensorType).toTypedArray()
    want.forEach((value, i) => expect(Math.abs((got[i] ?? NaN) - value)).toBeLessThan(1e-6))
    await expect(ort.InferenceSession.create(model)).rejects.toThrow(/data/)
  })

  it('takes shapes from the graph if it knows them', () => {
    const gm = makeFx((a: TensorType) => a.exp().sum(0))(x)
    expect(toOnnx(gm).inputs[0]?.shape).toEqual([1, 4])
    expect(messageOf(() => toOnnx(symbolicTrace((a: TensorType) => a.exp())))).toMatch(/shape of the input 'a' is not known; pass example inputs/)
  })

  it('turns writes to values into new values', async () => {
    const program = (a: TensorType): TensorType => {
      const b = a.mul(2)
      b.select(0, 0).add_(10)
      return b
    }
    const gm = symbolicTrace(program)
    expect(sameTensors(tensorsIn(gm.call(x)), await runModel(toOnnx(gm, { inputs: [x] }), [x]), 0).differences).toEqual([])
  })

  it('refuses embeddings with maxNorm, which write to their weight, but not where that is a value of the graph', async () => {
    const indices = torch.tensor([[0, 2]], { dtype: 'int64' })
    const layers = [
      (maxNorm: number | null) => new torch.nn.Embedding(4, 2, { maxNorm }),
      (maxNorm: number | null) => new torch.nn.EmbeddingBag(4, 2, { maxNorm }),
    ]
    const inputs = [indices, torch.ones([4, 2])]
    const exported: GraphModule[] = [symbolicTrace((i: TensorType, w: TensorType) => F.embedding(i, w.mul(3), { maxNorm: 1 }))]
    for (const make of layers) {
      expect(messageOf(() => toOnnx(symbolicTrace(new torch.nn.Sequential(make(1))), { inputs: [indices] }))).toMatch(
        /writes to an input or a buffer/,
      )
      exported.push(symbolicTrace(new torch.nn.Sequential(make(null))))
    }
    for (const gm of exported) {
      const given = inputs.slice(0, gm.graph.findNodes({ op: 'placeholder' }).length)
      expect(sameTensors(tensorsIn(gm.call(...given)), await runModel(toOnnx(gm, { inputs: given }), given), 1e-6).differences).toEqual([])
    }
  })

  it('refuses what a model cannot do, and names the node', () => {
    expect(messageOf(() => toOnnx(symbolicTrace(new Small()), { inputs: [torch.ones([2, 4])] }))).toMatch(
      /writes to an input or a buffer .*call eval\(\)/,
    )
    expect(
      messageOf(() =>
        toOnnx(
          symbolicTrace((a: TensorType) => torch.linalg.inv(a)),
          { inputs: [torch.eye(2)] },
        ),
      ),
    ).toMatch(/torch\.linalg\.inv cannot be exported: .*%inv \(call_function/)
  })

  it('refuses bad arguments', () => {
    const gm = symbolicTrace((a: TensorType) => a.exp())
    expect(messageOf(() => toOnnx(gm, { inputs: [x], opset: 19 }))).toMatch(/opset.*20/)
    expect(messageOf(() => toOnnx(gm, { inputs: [x], weights: 'beside' as never }))).toMatch(/weights/)
    expect(messageOf(() => toOnnx(gm, { input: [x] } as never))).toMatch(/input/)
    expect(messageOf(() => toOnnx(gm, { inputs: x as never }))).toMatch(/list of arguments/)
    expect(messageOf(() => toOnnx(x as unknown as GraphModule))).toMatch(/GraphModule/)
  })
})
