// The state of modules on which recorded calls depend: of those that were called, that are arguments, or that were compiled, with all below them.
import { codeVersion, hooksOf } from '../module/index.ts'
import type { Hook, Module } from '../module/index.ts'
import { value } from './argumentState.ts'
import type { StateKind } from './stateKind.ts'

export const mode: StateKind<Module, boolean> = {
  name: 'the mode: train or eval',
  compile: 'program',
  read: (module) => module.training,
  key: (module) => (module.training ? 'training' : 'evaluation'),
  show: (training) => (training ? 'training mode' : 'evaluation mode'),
  change: (_, training) => (training ? 'is in training mode now' : 'is in evaluation mode now'),
}

/** Properties of a module by name, without `training`. */
function attributesOf(module: Module): Readonly<Record<string, unknown>> {
  const { training: _, ...others } = Object.fromEntries(Object.entries(module))
  return others
}

export const attributes: StateKind<Module, Readonly<Record<string, unknown>>> = {
  name: 'its parameters, buffers, children and other properties',
  compile: 'program',
  read: attributesOf,
  agrees: (module, known) => {
    const now: Readonly<Record<string, unknown>> = Object(module)
    const names = Object.keys(known)
    return Object.keys(module).length === names.length + 1 && names.every((name) => Object.is(now[name], known[name]))
  },
  key: (module) =>
    Object.entries(attributesOf(module))
      .map(([name, of]) => `${name}: ${value.key(of)}`)
      .join(),
  show: (known) => Object.keys(known).join(', '),
  change: (was, is) => {
    const name = Object.keys({ ...was, ...is }).find((known) => !Object.is(was[known], is[known]))
    return `has another value of '${String(name)}' now`
  },
}

export const hooks: StateKind<Module, readonly (Hook | string)[]> = {
  name: 'its forward hooks',
  compile: 'program',
  read: hooksList,
  agrees: (module, known) =>
    known.length === 0
      ? hooksOf(module, 'forwardPre') === undefined && hooksOf(module, 'forward') === undefined
      : sameItems(hooksList(module), known),
  key: (module) => hooksList(module).map(value.key).join(),
  show: (known) => `${known.length} hooks`,
  change: () => 'has other forward hooks now',
}

function hooksList(module: Module): readonly (Hook | string)[] {
  return (['forwardPre', 'forward'] as const).flatMap((kind) => {
    const known = hooksOf(module, kind)
    return known === undefined ? [] : [kind, ...known]
  })
}

const sameItems = (a: readonly unknown[], b: readonly unknown[]): boolean => a.length === b.length && a.every((item, i) => Object.is(item, b[i]))

export const code: StateKind<Module, number> = {
  name: 'its code, if it is a GraphModule',
  compile: 'program',
  read: codeVersion,
  key: (module) => String(codeVersion(module)),
  show: (version) => `version ${version} of its code`,
  change: () => 'was recompiled',
}

export const moduleState: readonly StateKind<Module>[] = [mode, attributes, hooks, code]
