// Layers in files: every layer of nn is rebuilt with its options. And the parts that code in folders is made of.
import { mkdtempSync, readFileSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ArgumentError, Tensor, nn, torch } from 'tensorfx'

import { CodeGen, GraphModule, symbolicTrace, wrap } from 'tensorfx/fx'
import {
  Attributes,
  folderFiles,
  loadGraphModule,
  loadState,
  readSafetensors,
  registered,
  saveGraphModule,
  toFolder,
  writeSafetensors,
} from 'tensorfx/interop'
import { removeFolder } from '../helpers/folder.ts'
import { layerFromSpec } from '../../src/interop/layerFromSpec.ts'
import { moduleSpec } from '../../src/interop/moduleSpec.ts'
import type { ModuleSpec } from '../../src/interop/moduleSpec.ts'

const { tensor } = torch
const from = { where: 'loadGraphModule', layers: nn }

/** Each layer with options that are not the defaults, and the description that should be written. */
const layers: readonly (readonly [layer: nn.Module, args: readonly unknown[]])[] = [
  [new nn.Linear(2, 3, { bias: false }), [2, 3, { bias: false }]],
  [new nn.Linear(2, 3, { dtype: 'float64' }), [2, 3, { bias: true, dtype: 'float64' }]],
  [new nn.Identity(), []],
  [new nn.Flatten(0, 2), [{ startDim: 0, endDim: 2 }]],
  [
    new nn.Conv1d(4, 2, 3, { stride: 2, padding: 1, dilation: 2, groups: 2, bias: false }),
    [4, 2, [3], { stride: [2], padding: [1], dilation: [2], groups: 2, bias: false }],
  ],
  [
    new nn.Conv2d(4, 2, [3, 2], { stride: [2, 1], padding: [1, 0], dilation: [2, 1], groups: 2 }),
    [4, 2, [3, 2], { stride: [2, 1], padding: [1, 0], dilation: [2, 1], groups: 2, bias: true }],
  ],
  [new nn.BatchNorm1d(3, { eps: 0.1, momentum: 0.5, affine: false }), [3, { eps: 0.1, momentum: 0.5, affine: false, trackRunningStats: true }]],
  [new nn.BatchNorm2d(3, { trackRunningStats: false }), [3, { eps: 1e-5, momentum: 0.1, affine: true, trackRunningStats: false }]],
  [new nn.LayerNorm([2, 3], { eps: 0.1, bias: false }), [[2, 3], { eps: 0.1, elementwiseAffine: true, bias: false }]],
  [new nn.GroupNorm(2, 4, { eps: 0.1, affine: false }), [2, 4, { eps: 0.1, affine: false }]],
  [
    new nn.Embedding(5, 2, { paddingIdx: 1, maxNorm: 3, normType: 1, scaleGradByFreq: true }),
    [5, 2, { paddingIdx: 1, maxNorm: 3, normType: 1, scaleGradByFreq: true }],
  ],
  [new nn.Dropout(0.25), [{ p: 0.25, inplace: false }]],
  [new nn.ReLU({ inplace: true }), [{ inplace: true }]],
  [new nn.GELU({ approximate: 'tanh' }), [{ approximate: 'tanh' }]],
  [new nn.SiLU(), []],
  [new nn.Sigmoid(), []],
  [new nn.Tanh(), []],
  [new nn.LeakyReLU(0.5), [{ negativeSlope: 0.5 }]],
  [new nn.ELU(0.5), [{ alpha: 0.5 }]],
  [new nn.Softmax(1), [1]],
  [new nn.LogSoftmax(0), [0]],
  [new nn.MaxPool2d(3, { stride: 2, padding: 1, dilation: 2, ceilMode: true }), [3, { stride: 2, padding: 1, dilation: 2, ceilMode: true }]],
  [
    new nn.AvgPool2d(3, { stride: 2, padding: 1, ceilMode: true, countIncludePad: false, divisorOverride: 4 }),
    [3, { stride: 2, padding: 1, ceilMode: true, countIncludePad: false, divisorOverride: 4 }],
  ],
  [new nn.AdaptiveAvgPool2d([1, 2]), [[1, 2]]],
  [
    new nn.MultiheadAttention(4, 2, { dropout: 0.5, addZeroAttn: true, kdim: 3, batchFirst: true, bias: false }),
    [4, 2, { dropout: 0.5, addZeroAttn: true, kdim: 3, vdim: 4, batchFirst: true, bias: false, addBiasKv: false }],
  ],
  [
    new nn.MultiheadAttention(4, 2, { addBiasKv: true }),
    [4, 2, { dropout: 0, addZeroAttn: false, kdim: 4, vdim: 4, batchFirst: false, bias: true, addBiasKv: true }],
  ],
]

/** Layers of the same kinds as those above. Only what they print and their descriptions are compared. */
const others: readonly nn.Module[] = [
  new nn.Conv2d(2, 2, 3, { padding: 1, paddingMode: 'reflect' }),
  new nn.Conv3d(2, 4, [1, 2, 3], { groups: 2, padding: 'same' }),
  new nn.ConvTranspose1d(2, 4, 3, { stride: 2, outputPadding: 1, padding: 1, groups: 2 }),
  new nn.ConvTranspose3d(2, 4, 2, { dilation: 2, bias: false, dtype: 'float64' }),
  new nn.BatchNorm3d(2, { eps: 0.1 }),
  new nn.BatchNorm1d(2, { affine: false, dtype: 'float64' }),
  new nn.MultiheadAttention(4, 2, { dtype: 'float64' }),
  new nn.MultiheadAttention(4, 2, { kdim: 3, dtype: 'float16' }),
  new nn.InstanceNorm2d(2, { affine: true, trackRunningStats: true }),
  new nn.RMSNorm([2, 3], { eps: 0.1 }),
  new nn.LocalResponseNorm(3, { alpha: 0.5, k: 2 }),
  new nn.CrossMapLRN2d(3, { beta: 0.5 }),
  new nn.EmbeddingBag(5, 2, { mode: 'max', includeLastOffset: true, paddingIdx: 2, maxNorm: 1 }),
  new nn.Bilinear(2, 3, 4, { bias: false }),
  new nn.Dropout1d(0.1),
  new nn.Dropout2d({ inplace: true }),
  new nn.Dropout3d(0.2),
  new nn.AlphaDropout(0.3),
  new nn.FeatureAlphaDropout(0.4),
  new nn.SiLU({ inplace: true }),
  new nn.Hardswish({ inplace: true }),
  new nn.ReLU6({ inplace: true }),
  new nn.LeakyReLU(0.5, { inplace: true }),
  new nn.CELU(0.5),
  new nn.Hardtanh(-2, 2),
  new nn.RReLU(0.1, 0.2),
  new nn.Threshold(0.5, 1, { inplace: true }),
  new nn.GLU(0),
  new nn.Softplus(2, 3),
  new nn.Softmin(0),
  new nn.Hardshrink(0.1),
  new nn.Softshrink(0.2),
  new nn.PReLU(3, 0.5),
  new nn.Softmax2d(),
  new nn.MaxPool1d(2, { returnIndices: true }),
  new nn.MaxPool3d(2, { ceilMode: true }),
  new nn.AvgPool1d(2, { countIncludePad: false }),
  new nn.AvgPool3d([1, 2, 2], { divisorOverride: 3 }),
  new nn.LPPool2d(3, 2, { ceilMode: true }),
  new nn.MaxUnpool2d(2, { stride: 1 }),
  new nn.AdaptiveAvgPool3d([1, null, 2]),
  new nn.AdaptiveMaxPool1d(2, { returnIndices: true }),
  new nn.ReflectionPad1d([1, 2]),
  new nn.RNN(2, 3, { nonlinearity: 'relu', numLayers: 2, bias: false }),
  new nn.LSTM(2, 3, { batchFirst: true, bidirectional: true, projSize: 2, dropout: 0.5, numLayers: 2 }),
  new nn.GRU(2, 3, { bias: false }),
  new nn.RNNCell(2, 3, { nonlinearity: 'relu' }),
  new nn.LSTMCell(2, 3, { bias: false }),
  new nn.GRUCell(2, 3),
  new nn.ReplicationPad3d(1),
  new nn.CircularPad2d(1),
  new nn.ZeroPad2d([1, 2, 0, -1]),
  new nn.ConstantPad1d(1, 2.5),
  new nn.Fold([4, 4], 2, { stride: 2 }),
  new nn.Unfold([2, 1], { padding: [1, 0] }),
  new nn.Unflatten(1, [2, -1]),
  new nn.Upsample({ scaleFactor: [2, 3], mode: 'bilinear', alignCorners: true, recomputeScaleFactor: true }),
  new nn.UpsamplingNearest2d({ size: [3, 4] }),
  new nn.UpsamplingBilinear2d({ scaleFactor: 2 }),
  new nn.PixelShuffle(2),
  new nn.PixelUnshuffle(3),
  new nn.ChannelShuffle(2),
  new nn.CosineSimilarity(0, 1e-3),
  new nn.PairwiseDistance({ p: 1, keepdim: true }),
]

/** The options of a layer: its own fields. Buffers and parameters are compared by themselves. */
const fieldsOf = (layer: nn.Module): readonly string[] =>
  Object.entries(layer).flatMap(([key, value]) => (value instanceof Tensor ? [] : [`${key}: ${JSON.stringify(value)}`]))

const none = (name: string): never => {
  throw new Error(`asked for ${name}`)
}

describe('layers', () => {
  it('are described by the arguments of their constructors', () => {
    for (const [layer, args] of layers) {
      const spec = moduleSpec(layer)
      expect([spec?.class, spec?.args.map((arg) => JSON.stringify(arg))]).toEqual([layer.constructor.name, args.map((arg) => JSON.stringify(arg))])
    }
  })

  it('are rebuilt from their description, with the same options and tensors', () => {
    for (const layer of [...layers.map(([one]) => one), ...others]) {
      const spec = moduleSpec(layer) as ModuleSpec
      const state = layer.stateDict() as Map<string, Tensor>
      const copy = layerFromSpec(from, JSON.parse(JSON.stringify(spec)) as ModuleSpec, 'at.', (name) => state.get(name.slice(3)) as Tensor)
      expect(copy.constructor).toBe(layer.constructor)
      expect([...copy.stateDict()].map(([name, t]) => [name, t.shape, t.dtype])).toEqual(
        [...layer.stateDict()].map(([name, t]) => [name, t.shape, t.dtype]),
      )
      expect(String(copy)).toBe(String(layer))
      expect(fieldsOf(copy)).toEqual(fieldsOf(layer))
      expect(moduleSpec(copy)).toEqual(spec)
      expect([...copy.namedBuffers(), ...copy.namedParameters()].filter(([, t]) => t.isFake)).toEqual([])
    }
  })

  it('a class of the user is none, also if it is called as a layer is', () => {
    class Linear extends nn.Linear {}
    class Own extends nn.Module {
      override forward(): void {}
    }
    expect([moduleSpec(new Linear(1, 1)), moduleSpec(new Own()), moduleSpec(new nn.Sequential())]).toEqual([null, null, null])
    expect(() => layerFromSpec(from, { class: 'Nope', args: [] }, '', none)).toThrow(
      new ArgumentError("loadGraphModule: the file has a layer of class 'Nope', which this tensorfx does not have; update tensorfx."),
    )
    expect(() => layerFromSpec(from, { class: 'Module', args: [] }, '', none)).toThrow("a layer of class 'Module'")
  })
})

describe('attributes of the module', () => {
  class Kept extends nn.Module {
    readonly weight = new nn.Parameter(tensor([1]))
    constructor() {
      super()
      this.registerBuffer('scratch', tensor([2]), { persistent: false })
      this.registerBuffer('mean', tensor([3]))
    }
    override forward(x: Tensor): Tensor {
      return x.mul(this.weight)
    }
  }

  it('keep what they are: parameters, buffers in and out of the state dict, tensors, other values', () => {
    const gm = symbolicTrace(new Kept())
    gm.registerBuffer('scratch', tensor([2]), { persistent: false })
    gm.registerBuffer('mean', tensor([3]))
    gm.assignAttribute('free', tensor([4]))
    Object.assign(gm, { note: { deep: [1, null] }, scale: 0.5 })
    gm.meta['author'] = 'me'
    const copy = loadGraphModule(saveGraphModule(gm))
    expect([...copy.stateDict().keys()].sort()).toEqual([...gm.stateDict().keys()].sort())
    expect([...copy.ownBuffers()].map(([name, , persistent]) => [name, persistent]).sort()).toEqual(
      [...gm.ownBuffers()].map(([name, , persistent]) => [name, persistent]).sort(),
    )
    expect([copy.attribute('note'), copy.attribute('scale'), copy.meta['author']]).toEqual([{ deep: [1, null] }, 0.5, 'me'])
    expect((copy.attribute('free') as Tensor).toArray()).toEqual([4])
    expect(copy.hasBuffer('free')).toBe(gm.hasBuffer('free'))
  })

  it('a module without other attributes has none in the file', () => {
    const text = readSafetensors(saveGraphModule(symbolicTrace(new Kept()))).metadata['tensorfx.graphmodule'] ?? ''
    const { module } = JSON.parse(text) as { module: object }
    expect(Object.keys(module)).toEqual(['className', 'training', 'graph', 'modules', 'tensors'])
  })

  it('a file without one of its parts is refused', () => {
    const rewrite = (
      change: (file: { version: number; module?: unknown; shared?: unknown }) => unknown,
      drop: readonly string[] = [],
    ): Uint8Array => {
      const { tensors, metadata } = readSafetensors(saveGraphModule(symbolicTrace(new Kept())))
      const file = JSON.parse(metadata['tensorfx.graphmodule'] ?? '') as { version: number }
      const rest = [...tensors].filter(([name]) => !drop.includes(name))
      return writeSafetensors(rest, { 'tensorfx.graphmodule': JSON.stringify(change(file)) })
    }
    const malformed = new ArgumentError("loadGraphModule: 'tensorfx.graphmodule' in the file is not the description of a module.")
    expect(loadGraphModule(rewrite((file) => file)).className).toBe('Kept')
    for (const change of [() => [], () => 3, () => ({ version: '2', module: {}, shared: {} })])
      expect(() => loadGraphModule(rewrite(change))).toThrow(malformed)
    for (const [change, why] of [
      [({ version, shared }) => ({ version, shared }), 'module must be an object, got nothing'],
      [({ version, module }) => ({ version, module }), 'shared must be an object, got nothing'],
      [({ version, module }) => ({ version, module, shared: [] }), 'shared must be an object, got an array of length 0'],
      [({ version, shared }) => ({ version, module: 'text', shared }), "module must be an object, got 'text'"],
    ] as readonly [(file: { version: number; module?: unknown; shared?: unknown }) => unknown, string][])
      expect(() => loadGraphModule(rewrite(change))).toThrow(new ArgumentError(`loadGraphModule: ${why}.`))
    expect(() => loadGraphModule(rewrite((file) => ({ ...file, version: 99 })))).toThrow(
      'loadGraphModule: version 99 is newer than this tensorfx reads',
    )
    expect(() => loadGraphModule(rewrite((file) => file, ['weight']))).toThrow(
      new ArgumentError("loadGraphModule: the file lacks the tensor 'weight'."),
    )
    expect(() => loadGraphModule(writeSafetensors([], { 'tensorfx.graphmodule': '{' }))).toThrow(
      "loadGraphModule: 'tensorfx.graphmodule' in the file is not JSON: ",
    )
  })
})

describe('the code of a folder', () => {
  class Tiny extends nn.Module {
    readonly fc = new nn.Linear(2, 1, { bias: false })
    readonly gain = new nn.Parameter(tensor([2]), { requiresGrad: false })
    readonly bias = new nn.Parameter(tensor([[1]]))
    constructor() {
      super()
      this.registerBuffer('shift', tensor([true]))
    }
    override forward(x: Tensor): Tensor {
      return this.fc.call(x).mul(this.gain).add(this.bias)
    }
  }
  const indented = (gm: GraphModule, indent: string): readonly string[] =>
    gm.code
      .trimEnd()
      .replace('function ', '')
      .split('\n')
      .map((line) => `${indent}${line}`)

  it('is a class with the layers, parameters and buffers, and the generated method', () => {
    const gm = symbolicTrace(new Tiny()).eval()
    gm.registerBuffer('shift', tensor([true]))
    expect(folderFiles(gm, 'Tiny')['module.mjs'].split('\n')).toEqual([
      '// Tiny: written by tensorfx from a graph. You may edit it; the parameters are in state.safetensors.',
      "import { fx, nn, operator, torch } from 'tensorfx'",
      "import { Attributes, loadState, readState, registered } from 'tensorfx/interop'",
      '',
      'export class Tiny extends nn.Module {',
      '  /** The parameters are the saved ones. `bytes` is the content of state.safetensors; in Node it can be left out. */',
      "  constructor(bytes = readState(new URL('state.safetensors', import.meta.url))) {",
      '    super()',
      '    this.fc = new nn.Linear(2, 1, { bias: false })',
      "    this.gain = new nn.Parameter(torch.empty([1], { dtype: 'float32' }), { requiresGrad: false })",
      "    this.bias = new nn.Parameter(torch.empty([1, 1], { dtype: 'float32' }))",
      "    this.registerBuffer('shift', torch.empty([1], { dtype: 'bool' }))",
      '    loadState(this, bytes).eval()',
      '  }',
      '',
      ...indented(gm, '  '),
      '}',
      '',
      '/** The same as the constructor, for programs that wait for modules. */',
      'export async function load(bytes) {',
      '  return new Tiny(bytes)',
      '}',
      '',
      '// The imports that the code above does not use are for code that you may add.',
      'void [fx, operator, torch, Attributes, registered]',
      '',
    ])
    const { tensors } = readSafetensors(folderFiles(gm)['state.safetensors'])
    expect([...tensors.keys()].sort()).toEqual(['bias', 'fc.weight', 'gain', 'shift'])
    gm.train()
    expect(folderFiles(gm)['module.mjs']).toContain('    loadState(this, bytes)\n')
  })

  it('deeper attributes are in modules that hold them, and GraphModules inside are classes', () => {
    const gm = symbolicTrace((x: Tensor) => x)
    const inner = symbolicTrace(new Tiny())
    gm.addSubmodule('deep.inner', inner)
    gm.addSubmodule('deep.act', new nn.ReLU())
    const { 'module.mjs': code, 'state.safetensors': state } = folderFiles(gm)
    expect(code).toContain('    this.deep = new Attributes({ inner: new (class extends nn.Module {\n')
    expect(code).toContain('    })(), act: new nn.ReLU({ inplace: false }) })\n')
    const lines = code.split('\n')
    for (const line of [
      '      constructor() {',
      '        super()',
      '        this.fc = new nn.Linear(2, 1, { bias: false })',
      '      }',
      ...indented(inner, '      '),
    ]) {
      expect(lines).toContain(line)
    }
    expect([...readSafetensors(state).tensors.keys()].sort()).toEqual(['deep.inner.bias', 'deep.inner.fc.weight', 'deep.inner.gain'])
  })

  it('is written into a folder that is created', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'layers-'))
    try {
      const gm = symbolicTrace(new Tiny())
      const place = join(folder, 'a/b')
      await toFolder(gm, place, 'Tiny')
      const files = folderFiles(gm, 'Tiny')
      expect(readdirSync(place).sort()).toEqual(['module.mjs', 'state.safetensors'])
      expect(readFileSync(join(place, 'module.mjs'), 'utf8')).toBe(files['module.mjs'])
      expect(new Uint8Array(readFileSync(join(place, 'state.safetensors')))).toEqual(files['state.safetensors'])
    } finally {
      removeFolder(folder)
    }
  })

  it('Attributes registers tensors as buffers, and is not called', () => {
    const [buffer, parameter, child] = [tensor([1]), new nn.Parameter(tensor([2])), new nn.ReLU()]
    const held = new Attributes({ buffer, parameter, child })
    expect([...held.ownBuffers()].map(([name, value]) => [name, value])).toEqual([['buffer', buffer]])
    const [[name, value] = [], ...others] = held.ownParameters()
    expect([name, value === parameter, others]).toEqual(['parameter', true, []])
    expect([...held.children()]).toEqual([child])
    expect(() => held.forward()).toThrow(new ArgumentError('this module only holds attributes; call the module that it belongs to.'))
  })

  it('loadState loads the bytes, and registered finds functions by name', () => {
    const net = new Tiny()
    const weight = tensor([[5, 6]])
    const bytes = writeSafetensors([...net.stateDict()].map(([name, value]) => [name, name === 'fc.weight' ? weight : (value as Tensor)]))
    expect(loadState(net, bytes)).toBe(net)
    expect(net.fc.weight.toArray()).toEqual([[5, 6]])
    expect(registered('torch.relu')).toBe(torch.relu)
    expect(() => registered('layers.nope')).toThrow(
      new ArgumentError("the function 'layers.nope' is not registered; import the module that wraps it before this one."),
    )
  })

  it('custom code generators and foreign modules are refused', () => {
    class Custom extends CodeGen {}
    class Foreign extends nn.Module {
      override forward(x: Tensor): Tensor {
        return x
      }
    }
    const custom = symbolicTrace(new Tiny())
    custom.graph.setCodegen(new Custom())
    expect(() => folderFiles(custom)).toThrow(
      'toFolder: Tiny has a custom code generator, Custom, which cannot be written as code; set a CodeGen of tensorfx first.',
    )
    expect(() => saveGraphModule(custom)).toThrow(
      'saveGraphModule: the graph has a custom code generator, Custom, which cannot be saved; set a CodeGen of tensorfx first.',
    )
    const foreign = symbolicTrace((x: Tensor) => x)
    foreign.addSubmodule('own', new Foreign())
    expect(() => folderFiles(foreign)).toThrow("toFolder: module 'own' is of class Foreign, which cannot be rebuilt from its fields.")
    expect(() => saveGraphModule(foreign)).toThrow("saveGraphModule: module 'own' is of class Foreign")
  })

  it('functions without a registered name are refused, those with one are constants', () => {
    const name = `layers.own${Math.random().toString(36).slice(2)}`
    const own = wrap((x: Tensor) => x, { name })
    const { 'module.mjs': code } = folderFiles(symbolicTrace((x: Tensor) => own(x)))
    expect(code).toMatch(new RegExp(`^const layers = \\{ ${name.slice('layers.'.length)}: registered\\('${name}'\\) \\}$`, 'm'))
    // A slice of the language is one of fx.
    expect(folderFiles(symbolicTrace((x: Tensor) => x.narrow(0, 0, 1)))['module.mjs']).not.toContain('fx.Slice')
  })
})

describe('headers of safetensors files', () => {
  /** A file with that header and so many bytes of data. */
  const file = (header: unknown, bytes = 0): Uint8Array => {
    const text = new TextEncoder().encode(typeof header === 'string' ? header : JSON.stringify(header))
    const all = new Uint8Array(8 + text.length + bytes)
    new DataView(all.buffer).setBigUint64(0, BigInt(text.length), true)
    all.set(text, 8)
    return all
  }
  const entry = { dtype: 'F32', shape: [1], data_offsets: [0, 4] }
  const start = 'readSafetensors: this is not a safetensors file: '

  it('an entry has a dtype, a shape and two offsets', () => {
    expect(readSafetensors(file({ a: entry }, 4)).tensors.get('a')?.shape).toEqual([1])
    const wrong: readonly (readonly [unknown, string])[] = [
      [3, 'a must be an object, got 3'],
      [null, 'a must be an object, got null'],
      [[], 'a must be an object, got an array of length 0'],
      [{}, 'a.dtype must be a string, got nothing'],
      [{ ...entry, dtype: 3 }, 'a.dtype must be a string, got 3'],
      [{ ...entry, shape: 1 }, 'a.shape must be an array, got 1'],
      [{ ...entry, shape: ['1'] }, "a.shape[0] must be an integer from 0 on, got '1'"],
      [{ ...entry, shape: [0.5] }, 'a.shape[0] must be an integer from 0 on, got 0.5'],
      [{ ...entry, shape: [-1, -1] }, 'a.shape[0] must be an integer from 0 on, got -1'],
      [{ ...entry, shape: [2 ** 53] }, 'a.shape[0] must be an integer from 0 on, got 9007199254740992'],
      [{ ...entry, data_offsets: undefined }, 'a.data_offsets must be an array, got nothing'],
      [{ ...entry, data_offsets: [0] }, "the data_offsets of tensor 'a' must be 2 numbers, got 1"],
      [{ ...entry, data_offsets: [0, 4, 8] }, 'a.data_offsets must be an array of at most 2 items, got an array of length 3'],
      [{ ...entry, data_offsets: [0, '4'] }, "a.data_offsets[1] must be an integer from 0 on, got '4'"],
    ]
    for (const [a, why] of wrong) expect(() => readSafetensors(file({ a }, 8))).toThrow(why)
  })

  it('offsets fit to the shape and to the data', () => {
    const at =
      (from: number, to: number, bytes: number): (() => unknown) =>
      () =>
        readSafetensors(file({ a: { ...entry, data_offsets: [from, to] } }, bytes))
    expect(at(0, 4, 4)).not.toThrow()
    const size = "tensor 'a' of shape [1] should take 4 bytes, but its data_offsets are"
    for (const [from, to, bytes, why] of [
      [-4, 0, 8, 'a.data_offsets[0] must be an integer from 0 on, got -4'],
      [0, 8, 8, `${size} 0 and 8`],
      [0, 2, 8, `${size} 0 and 2`],
      [4, 0, 8, `${size} 4 and 0`],
      [4, 8, 8, "tensor 'a' starts at 4, where 0 was expected: there is a hole"],
      [0, 4, 3, "tensor 'a' ends at 4, but there are only 3 bytes of data"],
      [0, 4, 8, 'the tensors take 4 bytes, but there are 8 bytes of data'],
    ] as const)
      expect(at(from, to, bytes)).toThrow(why)
  })

  it('tensors do not overlap, leave holes, or have a name twice', () => {
    const read =
      (header: unknown, bytes: number): (() => unknown) =>
      () =>
        readSafetensors(file(header, bytes))
    const [first, second] = [entry, { ...entry, data_offsets: [4, 8] }]
    expect(read({ b: second, a: first }, 8)).not.toThrow()
    expect(read({ a: first, b: first }, 4)).toThrow(`${start}tensor 'b' starts at 0, where another tensor already is`)
    expect(read({ a: first, b: { ...entry, data_offsets: [6, 10] } }, 10)).toThrow("tensor 'b' starts at 6, where 4 was expected: there is a hole")
    expect(read(`{"a":${JSON.stringify(first)},"a":${JSON.stringify(first)}}`, 4)).toThrow("has the key 'a' twice in one object")
    expect(read(`{"a":${JSON.stringify(first)},"\\u0061":${JSON.stringify(first)}}`, 4)).toThrow("has the key 'a' twice in one object")
    expect(read({ a: { ...entry, shape: [2 ** 40, 2 ** 40, 0], data_offsets: [0, 0] } }, 0)).toThrow('is too large')
  })

  it('a name that readers cannot keep is refused, not lost', () => {
    expect(() => writeSafetensors([['__proto__', tensor([1])]])).toThrow("a tensor cannot be called '__proto__'")
    expect(() => writeSafetensors([], JSON.parse('{"__proto__": "x"}') as Record<string, string>)).toThrow("the key '__proto__'")
    expect(() => writeSafetensors([...'aa'].map((name): [string, Tensor] => [name, tensor([1])]))).toThrow("two tensors are called 'a'")
    expect(() => readSafetensors(file(`{"__proto__":${JSON.stringify(entry)}}`, 4))).toThrow("the key '__proto__'")
  })

  it('the header is an object in JSON, with texts as metadata and known dtypes', () => {
    expect(() => readSafetensors(file('{'))).toThrow('readSafetensors: the header of the file is not JSON: ')
    for (const header of [[], 3, null]) expect(() => readSafetensors(file(header))).toThrow(new ArgumentError(`${start}the header is not an object.`))
    expect(() => readSafetensors(file({ __metadata__: 3 }))).toThrow('readSafetensors: __metadata__ must be an object, got 3')
    expect(() => readSafetensors(file({ __metadata__: { a: 1 } }))).toThrow('readSafetensors: __metadata__.a must be a string, got 1')
    expect(readSafetensors(file({})).metadata).toEqual({})
    expect(() => readSafetensors(file({ a: { ...entry, dtype: 'C32' } }, 4))).toThrow(
      "readSafetensors: tensor 'a' has dtype C32, but tensorfx only reads ",
    )
  })
})
