// Warns about layers and parameters in plain arrays. A module only finds what its own properties hold.
import { isModule, isParameter } from '../protocol/index.ts'

/** What the warning needs of a module. */
interface Owner {
  readonly ['constructor']: { readonly name: string }
  ownParameters(): Iterable<readonly [name: string, parameter: unknown]>
}

/** The properties that were warned about, by class. */
const warned = new WeakMap<object, Set<string>>()

/**
 * Warns about arrays with modules that are not among `modules`, all modules of a tree, and about arrays with parameters that none of them owns. Once for
 * each property of a class.
 */
export function warnOfArrays(modules: ReadonlySet<Owner>): void {
  const all: ReadonlySet<unknown> = modules
  for (const owner of modules) {
    for (const [name, value] of Object.entries(owner)) {
      if (!Array.isArray(value)) continue
      if (value.some((item) => isModule(item) && !all.has(item)))
        warnOnce(owner, name, 'modules, whose parameters', `Use nn.ModuleList: this.${name} = new nn.ModuleList([…]).`)
      else if (value.some((item) => isParameter(item) && !isOwned(item, modules)))
        warnOnce(owner, name, 'parameters, which', 'Give each a property of its own, or call registerParameter.')
    }
  }
}

function isOwned(parameter: unknown, owners: Iterable<Owner>): boolean {
  for (const owner of owners) for (const [, own] of owner.ownParameters()) if (own === parameter) return true
  return false
}

function warnOnce(owner: Owner, name: string, what: string, fix: string): void {
  const names = warned.get(owner.constructor) ?? new Set()
  if (names.has(name)) return
  warned.set(owner.constructor, names.add(name))
  console.warn(`${owner.constructor.name}.${name} is an array of ${what} are neither trained nor saved, because arrays are not searched. ${fix}`)
}
