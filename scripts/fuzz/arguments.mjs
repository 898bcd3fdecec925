// Calls everything public with absurd arguments. A call may return, or throw a TensorfxError; a raw error of the engine is a finding, and so is a tensor with an
// impossible shape, or one that reaches outside its storage.
import { hashOf, randomFrom } from './random.mjs'

/** What the fuzzer does not call, and why: `*` stands for any end. */
const LEFT_OUT = {
  'tensorfx.Tensor': 'internal: tensors are made by torch.tensor and the like',
  'tensorfx.torch.Tensor': 'internal: tensors are made by torch.tensor and the like',
  'tensorfx.torch.autograd.Function.forward': 'overridden by the user',
  'tensorfx.torch.autograd.Function.backward': 'overridden by the user',
  'tensorfx.torch.ops.higher_order': 'what graphs record; programs call cond, whileLoop, scan and map',
  'sgd.checkGroup': 'protected',
  'sgd.checkAtLeast0': 'protected',
  'sgd.shapeOfState': 'protected',
  'sgd.checkOption': 'protected',
  'sgd.update': 'protected',
  'sgd.stateOf': 'protected',
  'tensorfx.torch.optim.Optimizer': 'abstract: its subclasses check',
  'fx_viewer.renderSvg': 'passes a text on to Graphviz, whose error says what is wrong with it',
  'compile.InvalidBackend': 'an error',
  'fx.math': 'the functions of JavaScript',
  'graph.tracerClass': 'a class, which is a setting of the graph',
  'graph.rename': 'internal',
  'graph.relist': 'internal',
  'graph.moveBefore': 'internal',
  'graph.formatNode': 'internal',
  'graph.isImpure': 'internal',
  'graphModule.cloneWith': 'internal',
  'graphModule.isImpureModule': 'internal',
  'graphModule.isImpureBody': 'internal',
  ...Object.fromEntries(
    ['runNode', 'placeholder', 'getAttr', 'callFunction', 'callMethod', 'callModule', 'output', 'fetchAttr', 'fetchArgsKwargs'].flatMap((name) =>
      ['interpreter', 'transformer'].map((of) => [`${of}.${name}`, 'overridden by subclasses, and called with what nodes hold']),
    ),
  ),
  ...Object.fromEntries(
    ['getattr', 'createProxy', 'createNode', 'createArg', 'traceBodies', 'getFreshQualname', 'untraced', 'createArgsForRoot', 'callModule'].map(
      (name) => [`tracer.${name}`, 'overridden by subclasses, and called while tracing'],
    ),
  ),
  ...Object.fromEntries(
    ['cse', 'deadCode', 'legalize', 'mergeAttributeReads', 'propagateShapes', 'split', 'unusedSubmodules'].map((name) => [
      `fx_passes.${name}.run`,
      'called by runPasses',
    ]),
  ),
  'dispatch.dispatch': 'takes normalized arguments',
  'dispatch.dispatchBelowAutograd': 'takes normalized arguments',
  'dispatch.runKernel': 'takes normalized arguments',
  'debug.runRepro': 'reads the command line, and ends the process',
  'debug.Isolator': 'starts processes',
  'debug.minifyBackendFailure': 'starts processes',
  'debug.workerHelper': 'starts a worker',
  'debug.serveWorker': 'listens to messages of the process',
  'debug.setFileStore': 'replaces where files are written',
  'debug.fileStore': 'writes files',
  'debug.InputReader': 'reads files',
  'debug.InputWriter': 'writes files',
  'debug.setLogSink': 'replaces where logs go',
  'debug.installDebug': 'changes how everything else compiles',
  kernels: 'takes addresses that the caller owns, and parts of the loop IR, which compileKernel verifies as a whole',
}

/** Members that are not called: of every function, and what tests of the language call. */
const SKIPPED_MEMBERS = new Set(['constructor', 'dispose', 'op', 'then', 'toJSON', 'prototype', 'length', 'name', 'caller', 'arguments', 'callee'])

class UsersError extends Error {}

/** Values that arguments are drawn from. Made anew for each call, as a call may change them. */
function values({ torch, nn, fx, fake }) {
  const cyclic = []
  cyclic.push(cyclic)
  const cyclicObject = {}
  cyclicObject.self = cyclicObject
  const gm = fx.symbolicTrace((x) => torch.relu(x).add(1))
  return {
    absurd: [
      undefined,
      null,
      NaN,
      Infinity,
      -Infinity,
      -1,
      -7,
      0.5,
      2 ** 31,
      2 ** 53,
      1e15,
      1e300,
      '',
      'constructor',
      '__proto__',
      true,
      {},
      [],
      [-1, 5],
      [NaN, 0],
      [0.5],
      [2 ** 53],
      [1e15, 1e15],
      [null],
      [undefined],
      ['a'],
      { dim: NaN },
      { nothing: 1 },
      { constructor: 1 },
      Object.create(null),
      10n,
      Symbol('s'),
      () => {
        throw new UsersError('thrown by an argument')
      },
      class A {},
      new Map([[1, 2]]),
      new Date(0),
      cyclic,
      cyclicObject,
      new Proxy({}, {}),
      fake,
    ],
    usual: [
      torch.ones([2, 3]),
      torch.tensor([0, 1]).long(),
      torch.zeros([0]),
      torch.ones([]),
      torch.ones([1, 1, 4, 4]),
      torch.ones([2]).requiresGrad_(),
      1,
      0,
      2,
      [2, 3],
      [1],
      'float32',
      'sum',
      'x',
      false,
      (x) => x,
      gm,
      gm.graph,
      [...gm.graph.nodes][1],
      new nn.Linear(3, 2),
      [torch.ones([2]), torch.ones([2])],
    ],
  }
}

/** Everything that can be called, by name: functions and classes of the entries, their static members, and methods of samples. */
export function surfaceOf(entries, samples) {
  const found = new Map()
  // Programs catch errors, and seldom make any of ours.
  const leftOut = (name) => Object.keys(LEFT_OUT).some((key) => name === key || name.startsWith(`${key}.`))
  const seen = new Set()
  const add = (name, call) => {
    if (!leftOut(name) && !found.has(name)) found.set(name, call)
  }
  const isClass = (value) => /^class\b/.test(Function.prototype.toString.call(value))
  const visit = (path, value, depth) => {
    if (depth > 3 || value === null || (typeof value !== 'object' && typeof value !== 'function') || seen.has(value)) return
    seen.add(value)
    if (typeof value === 'function' && value.prototype instanceof Error) return
    if (typeof value === 'function')
      add(path, isClass(value) ? (args) => Reflect.construct(value, args) : (args) => Reflect.apply(value, undefined, args))
    const prototype = Object.getPrototypeOf(value)
    const isNamespace = value[Symbol.toStringTag] === 'Module' || prototype === Object.prototype || prototype === null || typeof value === 'function'
    if (!isNamespace && depth > 0 && Object.getPrototypeOf(prototype) !== Object.prototype && path.split('.').length > 2) return
    for (const key of Object.getOwnPropertyNames(value)) {
      if (SKIPPED_MEMBERS.has(key) || key.startsWith('_')) continue
      const descriptor = Object.getOwnPropertyDescriptor(value, key)
      if (descriptor !== undefined && 'value' in descriptor) visit(`${path}.${key}`, descriptor.value, depth + 1)
    }
  }
  for (const [entry, module] of Object.entries(entries)) for (const key of Object.keys(module)) visit(`${entry}.${key}`, module[key], 0)
  for (const [name, make] of Object.entries(samples)) {
    const names = new Set()
    for (let level = make(); level !== null && level !== Object.prototype && level !== Function.prototype; level = Object.getPrototypeOf(level))
      for (const key of Object.getOwnPropertyNames(level)) {
        const descriptor = Object.getOwnPropertyDescriptor(level, key)
        if (typeof descriptor?.value === 'function' && !SKIPPED_MEMBERS.has(key) && !key.startsWith('_')) names.add(key)
      }
    for (const key of names)
      add(`${name}.${key}`, (args) => {
        const self = make()
        return Reflect.apply(self[key], self, args)
      })
  }
  return found
}

/** What is wrong with the tensors in a result; null if nothing is. */
function wrongTensors(result, Tensor, depth = 0) {
  if (result instanceof Tensor) {
    const { shape, strides, offset, storage, dtype } = result
    if (shape.some((size) => !Number.isSafeInteger(size) || size < 0)) return `a tensor of shape [${shape}]`
    if (storage === null || shape.includes(0)) return null
    let [lowest, highest] = [offset, offset]
    shape.forEach((size, i) => {
      const span = (size - 1) * strides[i]
      if (span < 0) lowest += span
      else highest += span
    })
    const inside = lowest >= 0 && (highest + 1) * result.elementSize() <= storage.nbytes
    return inside ? null : `a ${dtype} tensor of shape [${shape}], strides [${strides}] and offset ${offset} over ${storage.nbytes} bytes`
  }
  if (!Array.isArray(result) || depth > 2) return null
  for (const item of result.slice(0, 10)) {
    const wrong = wrongTensors(item, Tensor, depth + 1)
    if (wrong !== null) return wrong
  }
  return null
}

/** Arguments for round `round`: first one absurd value in each place, then anything. */
function draw(random, pools, round) {
  const count = random.int(5)
  const list = []
  for (let i = 0; i < count; i++) list.push(random.next() < (round % 2 === 0 ? 0.4 : 0.8) ? random.pick(pools.absurd) : random.pick(pools.usual))
  return list
}

const textOf = (value) => {
  try {
    if (Array.isArray(value))
      return `[${value
        .slice(0, 5)
        .map((item) => (Array.isArray(item) ? 'array' : textOf(item)))
        .join(', ')}]`
    if (typeof value === 'bigint') return `${value}n`
    if (typeof value === 'function') return value.name === '' ? 'function' : `function ${value.name}`
    if (typeof value === 'object' && value !== null)
      return value.constructor?.name === 'Object' ? `{${Object.keys(value)}}` : (value.constructor?.name ?? 'object')
    return typeof value === 'string' ? `'${value}'` : String(value)
  } catch {
    return 'value'
  }
}

/**
 * Calls every function of the surface `rounds` times. `library` is the entries by name (`tensorfx` is the front door), `reset` undoes what a call may change for
 * others. Returns the findings: which call, and what happened.
 */
export async function fuzzArguments(library, { seed, rounds, only = null, reset = () => {} }) {
  const { torch, nn, fx, Tensor, TensorfxError } = library.entries.tensorfx
  const fake = library.fake()
  const surface = surfaceOf(library.entries, library.samples)
  const findings = []
  let calls = 0
  for (const [name, call] of surface) {
    if (only !== null && !name.includes(only)) continue
    const random = randomFrom(seed ^ hashOf(name))
    for (let round = 0; round < rounds; round++) {
      const args = draw(random, values({ torch, nn, fx, fake }), round)
      const text = `${name}(${args.map(textOf).join(', ')})`
      calls++
      try {
        let result = call(args)
        if (result instanceof Promise) result = await result
        const wrong = wrongTensors(result, Tensor)
        if (wrong !== null) findings.push({ name, text, what: `returned ${wrong}` })
      } catch (error) {
        // An argument may be a class, which cannot be called.
        if (String(error?.message).startsWith('Class constructor A cannot be invoked')) continue
        if (!(error instanceof TensorfxError) && !(error instanceof UsersError) && !causedBy(error, UsersError))
          findings.push({
            name,
            text,
            what: error instanceof Error ? `${error.name}: ${error.message}` : `threw ${textOf(error)}`,
            stack: error?.stack,
          })
        else if (error instanceof TensorfxError && error.code === 'TFX_INTERNAL')
          findings.push({ name, text, what: error.message, stack: error.stack })
      }
      reset()
    }
  }
  return { functions: surface.size, calls, findings }
}

const causedBy = (error, Class) =>
  error instanceof Error && (error.cause instanceof Class || (error.cause instanceof Error && causedBy(error.cause, Class)))
