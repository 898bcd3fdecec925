// What a layer is configured with: the attributes that its class lists in `constants`, PyTorch's `__constants__`.
import { camelCase } from '../protocol/index.ts'
import { getAttribute } from './attributes.ts'
import type { Module } from './module.ts'

/** The attributes that the module's class lists in `constants`, with their values, by PyTorch's names (`in_features`). Attributes that are undefined are left out. */
export function constantsOf(module: Module): (readonly [name: string, value: unknown])[] {
  const names: unknown = Reflect.get(module.constructor, 'constants')
  return (Array.isArray(names) ? names : []).flatMap((name) => {
    const value = getAttribute(module, camelCase(String(name)))
    return value === undefined ? [] : [[String(name), value] as const]
  })
}
