// The compiler that reads programs: the API of TypeScript 5 or 6, which TypeScript 7 does not have. It is looked for in the project and beside tensorfx, under the names that
// installations have, and is an optional peer: nothing else of tensorfx needs it.
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import type * as ts from 'typescript6'
import { UnsupportedError } from '../errors/index.ts'
import { isFunction, isObject } from '../protocol/index.ts'

/** TypeScript's API. */
export type Compiler = typeof ts

/** Where the API may be: TypeScript up to 6, Microsoft's package for projects that have TypeScript 7 as `typescript`, and an alias for it. */
const NAMES = ['typescript', '@typescript/typescript6', 'typescript6']

const isCompiler = (value: unknown): value is Compiler =>
  isObject(value) && isFunction(Reflect.get(value, 'createProgram')) && isFunction(Reflect.get(value, 'parseJsonConfigFileContent'))

/** The compiler for the project in a folder. Throws UnsupportedError if there is none. */
export function loadCompiler(folder: string): Compiler {
  for (const from of [join(resolve(folder), 'package.json'), import.meta.url]) {
    const require = createRequire(from)
    for (const name of NAMES) {
      let found: unknown
      try {
        found = require(name)
      } catch {
        continue
      }
      if (isCompiler(found)) return found
    }
  }
  throw new UnsupportedError(
    `reading TypeScript needs the API of TypeScript 5 or 6, which is not installed (TypeScript 7 has none yet). Install it: npm install --save-dev @typescript/typescript6`,
  )
}
