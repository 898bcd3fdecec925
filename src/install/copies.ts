// Programs can load two copies of this library: two versions among the dependencies, or a bundle beside a package. Their tensors and modules do not work together, and
// "expected a Tensor, got a Tensor" does not help, so messages name the copy that a value is from.
import { TENSOR, isModule, setCopyText } from '../protocol/index.ts'
import { VERSION } from '../version.ts'

/** What identifies a copy. It is the value of COPY on the prototypes of its classes. */
interface Copy {
  readonly version: string
  readonly url: string
}

const COPY = Symbol.for('tensorfx.copy')

// Each copy has an object of its own, even if they have one version and one address.
const here: Copy = { version: VERSION, url: import.meta.url }

const textOf = (copy: unknown): string =>
  typeof copy === 'object' && copy !== null ? `${String(Reflect.get(copy, 'version'))} at ${String(Reflect.get(copy, 'url'))}` : 'an older version'

/** Marks a prototype as of this copy, and lets messages name values of others. */
export function markCopy(prototype: object): void {
  Object.defineProperty(prototype, COPY, { value: here, configurable: true })
  setCopyText((value) => {
    const copy: unknown = Reflect.get(value, COPY)
    // Versions before this had no mark. A module without one can be ours, since `tensorfx/fx` alone marks nothing.
    if (copy === here || !(TENSOR in value || (isModule(value) && copy !== undefined))) return ''
    return ` of another copy of tensorfx (that one is ${textOf(copy)}, this one ${textOf(here)}; make the program load only one: \`npm ls tensorfx\` shows both)`
  })
}
