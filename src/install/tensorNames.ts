// What tensors say about names that they do not have, in every program with tensors.
import { elementByKey, setElementByKey } from '../ops/view/getitem.ts'
import { explainUnknownNames } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'

/** Names of tensors that are properties, not methods. */
const PROPERTIES = ['shape', 'strides', 'dtype', 'numel', 'requiresGrad', 'grad', 'gradFn', 'isParameter', 'mT', 'mH', 'H']
/** Internal names, never suggested. */
const HIDDEN = new Set(['constructor', 'realize', 'valueOf', 'copyFrom', 'asParameter'])

const instead = new Map<string, string>()

/** Adds what to write instead of names. */
export function addTensorNames(names: Iterable<readonly [name: string, instead: string]>): void {
  for (const [name, text] of names) instead.set(name, text)
}

/** Adds what to import for names, unless another module has said what to write instead: entries are imported in any order, and with all operators loaded none is to be imported. */
export function addImportedNames(names: Iterable<readonly [name: string, instead: string]>): void {
  for (const [name, text] of names) if (!instead.has(name)) instead.set(name, text)
}

/** Tensors explain unknown names, and `x[0]` reads them. */
export function guideTensors(): void {
  explainUnknownNames(Tensor.prototype, {
    owner: 'x',
    known: () => [...PROPERTIES, ...Object.getOwnPropertyNames(Tensor.prototype).filter((name) => !HIDDEN.has(name))],
    instead,
    at: elementByKey,
    setAt: setElementByKey,
  })
}
