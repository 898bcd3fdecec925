// Where declarations stand, and the hashes of their tokens. Both follow from the syntax alone, so that a check of walks needs no program, only the files of its cards.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type * as ts from 'typescript6'
import type { Compiler } from '../compiler.ts'
import type { Project } from '../project.ts'
import { Declarations } from './declarations.ts'
import type { Declared } from './declarations.ts'
import { lineOf } from './program.ts'
import { Tokens, hashOf, normalized } from './tokens.ts'

/** The lines of a declaration, from 1, and the hash of its tokens. */
export interface Place {
  readonly line: number
  readonly endLine: number
  readonly hash: string
}

/** A function that finds the places of declarations, with the tokens of their files. */
export function placesIn(ts: Compiler, tokensOf: (file: ts.SourceFile) => Tokens): (declared: Declared) => Place {
  return (declared) => {
    const { file } = declared
    const spans = spansOf(ts, declared)
    const [first = [0, 0]] = spans
    const hashes = spans.map(([start, end]) => tokensOf(file).hash(start, end))
    return {
      line: lineOf(file, first[0]),
      endLine: lineOf(file, first[1]),
      hash: hashes.length === 1 ? (hashes[0] ?? '') : hashOf(hashes.join('\0')),
    }
  }
}

/** The places of all declarations in some sources of a project, by id, and the texts of these sources. */
export function readPlaces(
  ts: Compiler,
  { root, sources }: Project,
  paths: Iterable<string>,
): { readonly places: ReadonlyMap<string, Place>; readonly sources: ReadonlyMap<string, string> } {
  const known = new Set(sources)
  const declarations = new Declarations()
  const texts = new Map<string, string>()
  for (const path of new Set(paths)) {
    if (!known.has(path)) continue
    const text = readFileSync(join(root, path), 'utf8')
    texts.set(path, normalized(text))
    declarations.addFile(ts, ts.createSourceFile(path, text, ts.ScriptTarget.ESNext, true), path)
  }
  const tokens = new Map<ts.SourceFile, Tokens>()
  const placeOf = placesIn(ts, (file) => {
    const known = tokens.get(file) ?? new Tokens(ts, file)
    tokens.set(file, known)
    return known
  })
  return { places: new Map([...declarations.all].map(([id, declared]) => [id, placeOf(declared)])), sources: texts }
}

/** From where to where a declaration reaches. Overloads and their implementation are one piece. */
function spansOf(ts: Compiler, { nodes, file }: Declared): readonly (readonly [start: number, end: number])[] {
  const spans = nodes.map((node): readonly [number, number] => {
    const { parent } = node
    const isAlone = ts.isVariableDeclaration(node) && ts.isVariableDeclarationList(parent) && parent.declarations.length === 1
    const whole = isAlone ? parent.parent : ts.isBinaryExpression(node) && ts.isExpressionStatement(parent) ? parent : node
    return [whole.getStart(file), whole.end]
  })
  const isFunction = nodes.every((node) => ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node) || ts.isConstructorDeclaration(node))
  const last = spans.at(-1)
  return isFunction && last !== undefined && spans[0] !== undefined ? [[spans[0][0], last[1]]] : spans
}
