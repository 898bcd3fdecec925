// What shaders have around their code: the memory that they are bound to, and how many words a value takes there.
import type { Memory, ScalarParam, SizeParam } from '../ir/loopIr.ts'
import { dtypeInfo } from '../numbers/dtype.ts'
import type { DType } from '../numbers/dtype.ts'

/** What one word of a shader's uniforms holds: the number of threads, a zero, the first word of a memory and, if there are several slabs, which of them it is in, or a number of the call (an int64 has two words, the lower first). */
export type ShaderWord =
  | { readonly kind: 'threads' }
  | { readonly kind: 'zero' }
  | { readonly kind: 'memory'; readonly memory: Memory }
  | { readonly kind: 'slab'; readonly memory: Memory }
  | { readonly kind: 'number'; readonly param: ScalarParam | SizeParam; readonly half: 0 | 1 }

/** A compute shader. */
export interface Shader {
  readonly name: string
  readonly code: string
  /** What its uniforms hold, in order. */
  readonly words: readonly ShaderWord[]
}

/** The words that an element takes. */
export const wordsPer = (dtype: DType): 1 | 2 => (dtypeInfo[dtype].compute === 'int64' ? 2 : 1)

/** The type of a value. */
export const typeOf = (dtype: DType): string => (wordsPer(dtype) === 2 ? 'vec2<u32>' : 'u32')

/** Where the uniforms are bound: the slabs come before them. */
export const declarations = (slabs: number, words: number): readonly string[] => [
  ...Array.from({ length: slabs }, (_, i) => `@group(0) @binding(${i}) var<storage, read_write> slab${slabs === 1 ? '' : i}: array<u32>;`),
  `@group(0) @binding(${slabs}) var<uniform> uniforms: array<vec4<u32>, ${Math.ceil(words / 4)}>;`,
]

/** A word of one of several slabs, to read and to write. Each memory is in one, so that all threads go the same way. */
export function accessors(slabs: number): readonly string[] {
  if (slabs === 1) return []
  const cases = (line: (name: string) => string): string =>
    Array.from({ length: slabs }, (_, i) => `    ${i === slabs - 1 ? 'default' : `case ${i}u`}: { ${line(`slab${i}`)} }`).join('\n')
  return [
    `fn loadWord(slab: u32, at: u32) -> u32 {\n  switch slab {\n${cases((name) => `return ${name}[at];`)}\n  }\n}`,
    `fn storeWord(slab: u32, at: u32, word: u32) {\n  switch slab {\n${cases((name) => `${name}[at] = word;`)}\n  }\n}`,
  ]
}
