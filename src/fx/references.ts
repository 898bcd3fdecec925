// What the nodes of a graph refer to in the module that owns it: whether it is there, and whether it is of the kind that such nodes refer to.
import { Module } from '../module/index.ts'
import { isParameter } from '../protocol/index.ts'
import type { OwningModule } from './graph.ts'

/** The owner's part of a dotted path ('' for none), and the last name. */
export function splitPath(path: string): [owner: string, name: string] {
  const dot = path.lastIndexOf('.')
  return dot < 0 ? ['', path] : [path.slice(0, dot), path.slice(dot + 1)]
}

/** Whether `name` is part of a module's state: a module, a parameter, or a registered buffer. null may become any of them. */
export function isState(owner: unknown, name: string, value: unknown): boolean {
  if (value === null || value instanceof Module || isParameter(value)) return true
  return owner instanceof Module && owner.hasBuffer(name)
}

/** Warns when what a new node refers to is not there: legal, since it may be added later, but worth a word. */
export function warnMissing(module: OwningModule, op: 'get_attr' | 'call_module', path: string): void {
  const [ownerPath, name] = splitPath(path)
  const owner = ownerPath === '' ? module : module.attribute(ownerPath)
  const value = module.attribute(path)
  if (op === 'call_module' ? value instanceof Module : value !== undefined && isState(owner, name, value)) return
  if (op === 'get_attr' && !(owner instanceof Module)) console.warn(`Failed to fetch module ${ownerPath}!`)
  const advice =
    op === 'call_module'
      ? 'GraphModule.addSubmodule to add the necessary submodule'
      : 'GraphModule.addSubmodule to add the necessary submodule, registerParameter to add the necessary Parameter, or registerBuffer to add the necessary buffer'
  console.warn(`Attempted to insert a ${op} Node with no underlying reference in the owning GraphModule! Call ${advice} ('${path}').`)
}
