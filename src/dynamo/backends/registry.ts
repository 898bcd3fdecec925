// Backends by name: those of tensorfx, and those that programs register.
import { ArgumentError } from '../../errors/index.ts'
import { checkCount, checkOptions, checkString, isCallable, swappedHint, valueText } from '../../protocol/index.ts'
import { InvalidBackend } from '../reports/errors.ts'
import type { Backend, BackendOptions, Entry, FuseForSizes } from './backend.ts'
import { defaultBackends } from './builtIn.ts'

const registry = new Map<string, Entry>()

/** Whether that is the name of a backend of tensorfx, installed or not: `inductor`, the same on one engine, such as `inductor:c`, and those without a code generator. */
const isBuiltIn = (name: string): boolean => name.split(':')[0] === 'inductor' || Object.hasOwn(defaultBackends, name)

/**
 * Registers a backend under a name; PyTorch's register_backend. Registering the same function again does nothing.
 * @throws ArgumentError if the name is empty or taken, or `backend` is not a function.
 */
export function registerBackend(name: string, backend: Backend, options: BackendOptions = {}): void {
  checkCount('registerBackend', arguments, 3)
  checkOptions('registerBackend', options, { module: true, tags: true, staticShapes: 'boolean' })
  if (typeof name !== 'string' || name === '' || !isCallable(backend))
    throw new ArgumentError(
      `registerBackend: expected a name and a function (gm, exampleInputs) => compiled, got ${valueText(name)} and ${valueText(backend)}.${swappedHint(isCallable(name), 'name', 'backend', 'name, backend')}`,
    )
  const known = registry.get(name)
  if (known?.backend === backend) return
  if (known !== undefined || isBuiltIn(name))
    throw new ArgumentError(`registerBackend: duplicate name: there is already a backend '${name}'. Choose another name for this one.`)
  registry.set(name, { backend, options })
}

/** Registers backends of tensorfx itself. The composition root calls it. */
export function installBackends(entries: Readonly<Record<string, Entry>>): void {
  for (const [name, entry] of Object.entries(entries)) registry.set(name, entry)
}

/** The backend with that name; null if there is none. */
export const findBackend = (name: string): Backend | null => registry.get(name)?.backend ?? null

/** The backend with that name. Throws InvalidBackend. */
export function lookupBackend(name: string): Backend {
  checkString('lookupBackend', 'name', name)
  const backend = findBackend(name)
  if (backend === null) throw new InvalidBackend(name, [...registry.keys()])
  return backend
}

/** Names of the backends, without those for debugging. */
export const listBackends = (): string[] => [...registry].filter(([, e]) => !(e.options.tags ?? []).includes('debug')).map(([name]) => name)

/** Modules that an isolated process must import so that it has the backend. */
export function backendImports(name: string): readonly string[] {
  const module = registry.get(name)?.options.module
  return module === undefined ? [] : [module]
}

/** Whether another process can have the backend: it is one of tensorfx's, or a module registers it. */
export const isImportable = (name: string): boolean => isBuiltIn(name) || registry.get(name)?.options.module !== undefined

/** What a backend that was passed as a function is called: the name that it is registered under, or its own if no other backend has that. */
export function labelOf(backend: Backend): string {
  const registered = [...registry].find(([, entry]) => entry.backend === backend)?.[0]
  if (registered !== undefined) return registered
  const own = backend.name === '' ? 'custom' : backend.name
  return registry.has(own) ? `${own} (a function)` : own
}

/** Whether graphs with sizes among their inputs can be given to a backend. */
export const takesAnySizes = (backend: Backend): boolean =>
  backend.staticShapes !== true && ![...registry.values()].some((entry) => entry.backend === backend && entry.options.staticShapes === true)

/** What fuses graphs with sizes of a backend; null if nothing does. */
export const fusionOf = (backend: Backend): FuseForSizes | null =>
  [...registry.values()].find((entry) => entry.backend === backend)?.fuseForSizes ?? null
