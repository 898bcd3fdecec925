// The composition root of modules: what they say about PyTorch's names that they do not have.
import { Module } from '../module/index.ts'
import { ModuleList, Sequential } from '../nn/containers.ts'
import { moduleMethods } from '../nn/moduleMethods.ts'
import { PackedSequence } from '../nn/recurrent/packedSequence.ts'
import { explainUnknownNames } from '../protocol/index.ts'
import { registerPytreeNode } from '../pytree/index.ts'
import { markCopy } from './copies.ts'
import { OTHER_LIBRARIES } from './otherLibraries.ts'

const NO_MODULE_DEVICES = "write model.to('cpu'), or import tensorfx/webgpu and write model.to('webgpu')"

const INSTEAD_OF_MODULE = new Map<string, string>([
  ...Object.entries(OTHER_LIBRARIES.module),

  ['cuda', NO_MODULE_DEVICES],
  ['cpu', NO_MODULE_DEVICES],
  ['forward', 'the class of a module must define forward(x), which computes its output'],
])

/** Methods of arrays, which containers are not. */
const INSTEAD_OF_CONTAINER = new Map<string, string>([
  ['push', 'write modules.append(module)'],
  ...['map', 'forEach', 'filter', 'reduce', 'some', 'every', 'find', 'slice'].map((name): [string, string] => [
    name,
    `spread it: [...modules].${name}(…), or for (const module of modules)`,
  ]),
])

let isRegistered = false

/** Compiled functions take and return packed sequences: their data changes, the lengths are part of what is compiled. */
function registerPackedSequence(): void {
  if (isRegistered) return
  isRegistered = true
  registerPytreeNode(PackedSequence, {
    flatten: ({ data, sizes, order }) => ({ children: [data], context: { sizes, order } }),
    // Not by the constructor, since a leaf can be anything.
    unflatten: ([data], context) => Object.assign<PackedSequence, object>(Object.create(PackedSequence.prototype), { data, ...context }),
    sameContext: (a, b) => String(a.sizes) === String(b.sizes) && String(a.order) === String(b.order),
  })
}

/** Modules explain PyTorch's spelling of their methods. Users add properties of their own, so nothing else is taken for a mistake. */
export function installModules(): void {
  markCopy(Module.prototype)
  registerPackedSequence()
  for (const [name, value] of Object.entries(moduleMethods))
    Object.defineProperty(Module.prototype, name, { value, writable: true, configurable: true })
  for (const container of [ModuleList, Sequential])
    explainUnknownNames(container.prototype, {
      owner: 'modules',
      known: () => Object.getOwnPropertyNames(container.prototype),
      instead: INSTEAD_OF_CONTAINER,
      extensible: true,
    })
  explainUnknownNames(Module.prototype, {
    owner: 'module',
    known: () => Object.getOwnPropertyNames(Module.prototype),
    instead: INSTEAD_OF_MODULE,
    extensible: true,
  })
}
