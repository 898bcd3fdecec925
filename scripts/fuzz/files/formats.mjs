// The formats that come from outside. Each has seeds, mutants of them as bytes, and `read`, which does with the bytes what a program would do with the file.
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as torchFile from './torchFile.mjs'
import { trainingFormats } from './training.mjs'
import { Entries, mutateBytes, mutateValue, toEntries, toText } from './mutate.mjs'

const utf8 = new TextEncoder()
const text = new TextDecoder()

const KEY = 'tensorfx.graphmodule'

/** A safetensors file by its parts. */
function pack(header, data) {
  const json = utf8.encode(header)
  const out = new Uint8Array(8 + json.length + data.length)
  new DataView(out.buffer).setBigUint64(0, BigInt(json.length), true)
  out.set(json, 8)
  out.set(data, 8 + json.length)
  return out
}

function unpack(bytes) {
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true))
  return { header: JSON.parse(text.decode(bytes.subarray(8, 8 + length))), data: bytes.slice(8 + length) }
}

/** A file as a value that can be mutated and made smaller, and how it becomes bytes again. Null if the bytes are not such a file. */
const parts = {
  json: (bytes) => ({ value: toEntries(JSON.parse(text.decode(bytes))), build: (value) => utf8.encode(toText(value)) }),
  header(bytes) {
    const { header, data } = unpack(bytes)
    return { value: toEntries(header), build: (value) => pack(toText(value), data) }
  },
  description: (bytes) => metadataParts(bytes, KEY),
  state: (bytes) => metadataParts(bytes, 'state'),
}

/** The JSON that the metadata of a safetensors file have under a key. */
function metadataParts(bytes, key) {
  const { header, data } = unpack(bytes)
  const { __metadata__: metadata, ...tensors } = header
  const { [key]: json, ...rest } = metadata
  const build = (value) => {
    const texts = new Entries([...Object.entries(rest), [key, toText(value)]])
    return pack(toText(new Entries([['__metadata__', texts], ...toEntries(tensors).entries])), data)
  }
  return { value: toEntries(JSON.parse(json)), build }
}

/** The parts of bytes that may not have them. */
export function partsOf(format, bytes) {
  try {
    return parts[formats[format].form](bytes)
  } catch {
    return null
  }
}

/** The parts of seeds, which every mutant is made of. */
const seedParts = new WeakMap()

function mutateParts(dice, form, bytes) {
  const known = seedParts.get(bytes) ?? {}
  seedParts.set(bytes, known)
  const { value, build } = (known[form] ??= parts[form](bytes))
  return build(mutateValue(dice, value))
}

/** Mutants of a file: of its bytes, or of its header. */
function mutateFile(dice, bytes) {
  return dice.chance(0.3) ? mutateBytes(dice, bytes) : mutateParts(dice, 'header', bytes)
}

/** A module with layers, nested inputs, options, shared tensors, a GraphModule inside, slices, tuples and meta. */
function models({ nn, torch, fx }) {
  class Block extends nn.Module {
    conv = new nn.Conv2d(1, 2, 3, { padding: 1 })
    norm = new nn.BatchNorm2d(2)
    scale = new nn.Parameter(torch.ones([1, 2, 1, 1]))
    forward(x) {
      return torch.relu(this.norm(this.conv(x))).mul(this.scale)
    }
  }
  class Net extends nn.Module {
    block = new Block()
    fc = new nn.Linear(2, 3)
    forward(x) {
      return nn.functional.softmax(this.fc(this.block(x).mean([2, 3])), { dim: 1 })
    }
  }
  class Tied extends nn.Module {
    a = new nn.Parameter(torch.ones([2, 2]))
    b = this.a
    drop = new nn.Dropout(0.5)
    attention = new nn.MultiheadAttention(2, 1)
    forward(x) {
      return this.drop(x.mm(this.a)).mm(this.b)
    }
  }
  const net = fx.symbolicTrace(new Net())
  const tied = fx.symbolicTrace(new Tied())
  tied.registerBuffer('scratch', torch.tensor([1, 2]), { persistent: false })
  tied.addSubmodule('deep.inner', fx.symbolicTrace(new nn.Sequential(new nn.Linear(2, 2), new nn.ReLU())))
  Object.assign(tied, { note: { a: [1, Infinity] } })
  Object.assign(tied.meta, { k: new Map([['v', null]]) })
  const nested = fx.symbolicTrace(
    (d, m, { scale = 2 } = {}) => ({ out: [d.a.mul(scale), d.b[0].add(m.get('k')).reshape([-1]).slice(0, 0, 1)], size: d.a.shape[0] }),
    {
      concreteArgs: { d: { a: fx.PH, b: [fx.PH] }, m: new Map([['k', fx.PH]]) },
    },
  )
  const [x] = net.graph.findNodes({ op: 'placeholder' })
  x.type = 'Optional[List[Tensor]]'
  for (const node of net.graph.nodes) node.meta.val = { shape: [1, 2], dtype: 'float32', strides: [2, 1], requiresGrad: false }
  const sliced = new fx.Graph()
  const input = sliced.placeholder('x', 'Tensor')
  const item = sliced.callFunction(fx.operator?.getitem ?? torch.relu, [input, 0])
  sliced.output(sliced.callMethod('get', [item, fx.tuple(1, -0, NaN), new fx.Slice(0, null, 2), { a: [input, 'text'] }]))
  return [net, tied, nested, new fx.GraphModule({}, sliced)]
}

/** A model with a layer that tensorfx/core does not have, which the reader passes. */
const withAnotherLayer = ({ nn, fx }) => fx.symbolicTrace(new nn.Sequential(new nn.InstanceNorm1d(2, { affine: true }), new nn.Linear(2, 2)))

/** Uses a GraphModule as programs do, without computing: text, code, pages, files, shapes. */
function use(api, gm) {
  gm.graph.lint()
  String(gm.graph)
  gm.printReadable({ print: false, includeModule: true, includeStride: true, includeDevice: true })
  gm.graph.generateCode({ types: 'typescript' })
  gm.graph.generateCode({ types: 'jsdoc', verbose: true })
  for (const node of gm.graph.nodes) String(node.stackTrace)
  api.graphPage(gm)
  api.compareGraphs(gm.graph, gm.graph.deepCopy())
  const again = api.loadGraphModule(api.saveGraphModule(gm))
  check(api.compareGraphs(gm.graph, again.graph) === null, 'a loaded module differs after it was saved and loaded again')
  const folder = api.folderFiles(gm)['module.mjs']
  // A graph may have inputs that no function of JavaScript has, such as one after the rest; then its own code is none.
  if (isCode(`(${gm.code})`)) check(isCode(bodyOf(folder)), 'the folder of code is not JavaScript')
  run(api, gm)
}

/** The body of a module as that of a function. */
const bodyOf = (code) =>
  `async () => {\n${code
    .replace(/^import .*$/gm, '')
    .replace(/^export /gm, '')
    .replace('import.meta.url', "'here'")}\n}`

function isCode(expression) {
  try {
    // oxlint-disable-next-line no-new-func -- it is compiled, not run
    return new Function(`return ${expression}`).length === 0
  } catch {
    return false
  }
}

export class FuzzError extends Error {}

function check(holds, what) {
  if (!holds) throw new FuzzError(what)
}

/** Calls a module with fake tensors, whose operators compute shapes only. What it throws is a matter of its arguments; what it does is watched. */
function run({ FakeTensorMode, withMode, torch }, gm) {
  const x = torch.ones([2, 2])
  for (const inputs of [[x], [{ a: x, b: [x] }, new Map([['k', x]]), {}], [torch.ones([1, 1, 4, 4])]]) {
    try {
      withMode(new FakeTensorMode(), () => gm.call(...inputs))
    } catch {
      // The graph is not one for these inputs.
    }
  }
}

const json = (value) => utf8.encode(toText(toEntries(value)))

/** Reads JSON for formats that are given as values; JSON.parse is the program's own then. */
function parsed(bytes, reviver) {
  try {
    return JSON.parse(text.decode(bytes), reviver)
  } catch {
    return undefined
  }
}

const mutateJson = (dice, bytes) => mutateParts(dice, 'json', bytes)

/** The formats by name. */
export const formats = {
  ...trainingFormats({ mutateFile, mutateState: (dice, bytes) => mutateParts(dice, 'state', bytes) }),
  safetensors: {
    seeds: ({ torch, writeSafetensors }) => [
      writeSafetensors([]),
      writeSafetensors(
        [
          ['a', torch.ones([2, 3])],
          ['b.weight', torch.tensor([true, false])],
          ['c', torch.zeros([0, 3])],
          ['d', torch.tensor(5).to('float64')],
        ],
        { note: 'hello' },
      ),
    ],
    form: 'header',
    mutate: mutateFile,
    read({ readSafetensors, writeSafetensors }, bytes) {
      const { tensors, metadata } = readSafetensors(bytes)
      let size = 0
      for (const tensor of tensors.values()) {
        check(
          tensor.shape.every((n) => Number.isSafeInteger(n) && n >= 0),
          'a shape is none',
        )
        size += tensor.numel * tensor.elementSize()
        String(tensor)
      }
      check(size <= bytes.length, 'the tensors are larger than the file')
      const again = readSafetensors(writeSafetensors(tensors, metadata))
      check([...again.tensors.keys()].join() === [...tensors.keys()].join(), 'a tensor was lost')
    },
  },
  'torch-file': {
    seeds: torchFile.seeds,
    form: 'bytes',
    mutate: torchFile.mutate,
    read({ readStateDict, nn }, bytes) {
      const state = readStateDict('loadTorchFile', bytes, null)
      for (const tensor of state.values()) {
        const { shape, strides, offset, storage } = tensor
        const last = shape.includes(0) ? 0 : shape.reduce((end, n, i) => end + (n - 1) * strides[i], offset) + 1
        check(last * tensor.elementSize() <= storage.nbytes && storage.nbytes <= bytes.length, 'a tensor reaches beyond the file')
        if (tensor.numel <= 1e4) String(tensor)
      }
      const model = new nn.Linear(3, 2)
      model.loadStateDict(state, { strict: false })
    },
  },
  'graph-json': {
    seeds: (api) => models(api).map((gm) => json(api.graphToJson(gm.graph))),
    form: 'json',
    mutate: mutateJson,
    read(api, bytes) {
      const value = parsed(bytes)
      if (value === undefined) return
      const graph = api.graphFromJson(value)
      check(api.compareGraphs(graph, api.graphFromJson(api.graphToJson(graph))) === null, 'a graph differs after it was written and read again')
      const root = Object.create(null)
      for (const { op, target } of graph.nodes) {
        if (op === 'get_attr') root[target] = api.torch.ones([1])
        if (op === 'call_module') root[target] = new api.nn.ReLU()
      }
      use(api, new api.fx.GraphModule(root, graph))
    },
  },
  graphmodule: {
    seeds: (api) => models(api).map((gm) => api.saveGraphModule(gm)),
    form: 'description',
    mutate: (dice, bytes) => (dice.chance(0.15) ? mutateFile(dice, bytes) : mutateParts(dice, 'description', bytes)),
    read: (api, bytes) => use(api, api.loadGraphModule(bytes)),
  },
  /** The same files, read by tensorfx/core. */
  model: {
    // Without the nested inputs, which it refuses.
    seeds: (api) =>
      [...models(api).filter((gm) => gm.graph.findNodes({ op: 'placeholder' }).length === 1), withAnotherLayer(api)].map((gm) =>
        api.saveGraphModule(gm),
      ),
    form: 'description',
    mutate: (dice, bytes) => (dice.chance(0.15) ? mutateFile(dice, bytes) : mutateParts(dice, 'description', bytes)),
    read(api, bytes) {
      const model = api.loadModel(bytes, { layers: { InstanceNorm1d: api.nn.InstanceNorm1d } })
      String(model)
      for (const [name, tensor] of model.stateDict()) check(tensor.numel === tensor.toTypedArray().length, `the tensor '${name}' has another size`)
      model.train().eval()
      run(api, model)
    },
  },
  'state-dicts': {
    seeds: (api) => [
      ...OPTIMIZERS.map((name) => json(stateOf(api, name))),
      json({ ...stateOf(api, 'Adam'), schedule: { baseLrs: [0.1], lastEpoch: 3 } }),
    ],
    form: 'json',
    mutate: mutateJson,
    read(api, bytes) {
      const value = parsed(bytes, withTensors(api))
      if (typeof value !== 'object' || value === null) return
      const { name = 'Adam' } = value
      if (!OPTIMIZERS.includes(name)) return
      const [optimizer, parameters] = optimizerOf(api, name)
      const schedule = new api.optim.StepLR(optimizer, 2)
      const before = String(optimizer)
      try {
        optimizer.loadStateDict(value.optimizer)
      } catch (error) {
        check(String(optimizer) === before && optimizer.state.size === 0, 'a state dict that was refused changed the optimizer')
        throw error
      }
      if (value.schedule !== undefined) schedule.loadStateDict(value.schedule)
      String(optimizer)
      takeStep(api, optimizer, parameters)
      for (const p of parameters) check(p.numel === p.toTypedArray().length, 'a parameter changed its shape')
    },
  },
  /** The manifest of a checkpoint, beside the file of one rank. */
  checkpoint: {
    form: 'json',
    seeds(api) {
      return [savedCheckpoint(api).manifest]
    },
    mutate: mutateManifest,
    read(api, bytes) {
      const { training } = api
      const { path, parts, manifest } = savedCheckpoint(api)
      const file = join(path, 'manifest.json')
      writeFileSync(file, bytes)
      try {
        training.loadStates('loadCheckpoint', parts, training.readByRanks('loadCheckpoint', path, training.ALONE), training.ALONE)
      } finally {
        writeFileSync(file, manifest)
      }
    },
  },
  'fsdp-optim': {
    seeds: (api) =>
      ['SGD', 'Adam', 'Adamax'].flatMap((name) =>
        [false, true].map((useOrigParams) => {
          const { model, optimizer } = divided(api, { name, useOrigParams })
          return json(asJson(api, { name, useOrigParams, state: api.fsdp.fullOptimStateDict(model, optimizer) }))
        }),
      ),
    form: 'json',
    mutate: mutateJson,
    read(api, bytes) {
      const value = parsed(bytes, withTensors(api))
      if (typeof value !== 'object' || value === null) return
      const { model, optimizer } = divided(api, value)
      api.fsdp.rekeyOptimStateDict(value.state, 'PARAM_ID', model)
      api.fsdp.scatterFullOptimStateDict(value.state, model, optimizer)
      optimizer.loadStateDict(api.fsdp.optimStateDictToLoad(model, optimizer, value.state))
      model(api.torch.ones([1, 2]))
        .sum()
        .backward()
      optimizer.step()
      api.fsdp.fullOptimStateDict(model, optimizer)
    },
  },
  'repro-inputs': {
    seeds: () => [
      json({ shape: [2, 3], options: { strides: [3, 1], dtype: 'float32', requiresGrad: true }, bytes: 24 }),
      json({ shape: [2, 2], options: { strides: [1, 4], dtype: 'float64' }, bytes: 64 }),
      json({ shape: [4], options: {}, bytes: 16 }),
    ],
    form: 'json',
    mutate: mutateJson,
    read({ InputReader, MemoryFileStore }, bytes) {
      const value = parsed(bytes)
      if (typeof value !== 'object' || value === null) return
      const store = new MemoryFileStore()
      const size = Number.isSafeInteger(value.bytes) && value.bytes >= 0 && value.bytes < 1e6 ? value.bytes : 16
      const data = new Uint8Array(size)
      const hash = createHash('sha1').update(data).digest('hex')
      store.write(`dir/storages/${hash}`, data)
      const reader = new InputReader(store, 'dir')
      const tensor = reader.tensor(reader.storage(hash, size), value.shape, value.options)
      const last = tensor.shape.includes(0) ? 0 : tensor.shape.reduce((end, n, i) => end + (n - 1) * tensor.strides[i], 1)
      check(last * tensor.elementSize() <= size, 'the tensor ends after its storage')
      String(tensor)
    },
  },
}

const OPTIMIZERS = ['SGD', 'Adam', 'AdamW', 'NAdam', 'RAdam', 'Adamax', 'Adagrad', 'Adadelta', 'RMSprop', 'Rprop', 'ASGD', 'Adafactor', 'LBFGS']

/** An optimizer of two parameters, with all its state. */
function optimizerOf({ torch, nn, optim }, name) {
  const parameters = [new nn.Parameter(torch.ones([2])), new nn.Parameter(torch.ones([1, 2]))]
  const options = { SGD: { momentum: 0.9 }, Adam: { amsgrad: true }, RMSprop: { centered: true, momentum: 0.9 }, LBFGS: { maxIter: 3 } }
  return [new optim[name](parameters, { lr: 0.1, ...options[name] }), parameters]
}

/** Steps as a program takes them after it has loaded a state. LBFGS computes the loss as often as its options say, which may be for ever: the program stops it. */
function takeStep({ torch, ArgumentError }, optimizer, parameters) {
  let losses = 0
  optimizer.step(() => {
    if (++losses > 30) throw new ArgumentError('enough')
    const loss = parameters.map((p) => p.mul(p).sum()).reduce((a, b) => a.add(b))
    for (const p of parameters) p.grad = torch.ones(p.shape)
    return loss
  })
}

/** The state of an optimizer after two steps, with tensors as `{ $tensor: shape }`. */
function stateOf(api, name) {
  const [optimizer, parameters] = optimizerOf(api, name)
  for (let i = 0; i < 2; i++) takeStep(api, optimizer, parameters)
  return { name, optimizer: asJson(api, optimizer.stateDict()) }
}

/** A value with tensors as `{ $tensor: shape }`. */
const asJson = (api, value) =>
  value instanceof api.Tensor
    ? { $tensor: value.shape }
    : Array.isArray(value)
      ? value.map((item) => asJson(api, item))
      : typeof value === 'object' && value !== null
        ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, asJson(api, item)]))
        : value

/** Makes tensors again, of sizes that a file could have. */
const withTensors =
  ({ torch }) =>
  (_, item) =>
    Array.isArray(item?.$tensor) && item.$tensor.every((n) => [1, 2, 4].includes(n)) ? torch.ones(item.$tensor) : item

let saved = null

/** A checkpoint that ranks wrote, of a small model, made once. */
function savedCheckpoint({ nn, optim, torch, training }) {
  if (saved !== null) return saved
  const folder = mkdtempSync(join(tmpdir(), 'tensorfx-fuzz-checkpoint-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const model = new nn.Sequential(new nn.Linear(2, 3), new nn.BatchNorm1d(3))
  const optimizer = new optim.AdamW(model.parameters(), { lr: 0.1 })
  model(torch.ones([4, 2]))
    .sum()
    .backward()
  optimizer.step()
  const { ALONE, CheckpointFiles, partsOf, ranksOrNull, saveByRanks } = training
  const parts = partsOf('saveCheckpoint', { model, optimizer }, ranksOrNull())
  const files = new CheckpointFiles(process.getBuiltinModule('node:fs'), 'saveCheckpoint', folder)
  const path = saveByRanks('saveCheckpoint', ALONE, files, { parts, extra: { step: 1 }, about: { score: 0.5, mode: 'min' } })
  saved = { path, parts, manifest: new Uint8Array(readFileSync(join(path, 'manifest.json'))) }
  return saved
}

/** A mutant of a manifest: of itself, or of a state in it, which is JSON too. */
function mutateManifest(dice, bytes) {
  if (dice.chance(0.4)) return mutateJson(dice, bytes)
  const manifest = JSON.parse(new TextDecoder().decode(bytes))
  const mutated = (text) => new TextDecoder().decode(mutateJson(dice, new TextEncoder().encode(text)))
  if (dice.chance(0.7)) manifest.metadata.state = mutated(manifest.metadata.state)
  else manifest.ranks[0] = mutated(manifest.ranks[0])
  return json(manifest)
}

/** A model whose parameters are divided, and an optimizer of it that has taken a step. */
function divided({ torch, nn, optim, fsdp }, { name, useOrigParams }) {
  const model = new fsdp.FSDP(new nn.Linear(2, 2), { useOrigParams: useOrigParams === true })
  const optimizer = new optim[['SGD', 'Adamax'].includes(name) ? name : 'Adam'](model.parameters(), {
    lr: 0.1,
    ...(name === 'SGD' && { momentum: 0.9 }),
  })
  model(torch.ones([1, 2]))
    .sum()
    .backward()
  optimizer.step()
  return { model, optimizer }
}
