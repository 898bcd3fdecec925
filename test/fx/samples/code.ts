// The shape of generated code: which names are assigned, in which order, and which values are released after which line. PyTorch's is Python, ours is
// JavaScript; what stands on the right of an assignment is tested by running it.
import { expect } from 'vitest'
import type { GraphModule } from 'tensorfx/fx'
import { usedDifferences } from './differences.ts'
import type { GoldenNode } from './golden.ts'

/** One statement: the name that it assigns (null for none), and the names that it releases. */
interface Statement {
  readonly name: string | null
  readonly released: readonly string[]
}

const names = (text: string | undefined): string[] => (text === undefined ? [] : text.split(' = ').filter((name) => name !== ''))

/** Statements of Python's `forward`, but not its return. */
function pythonStatements(code: string): Statement[] {
  const statements: Statement[] = []
  for (const line of code.split('\n')) {
    const match = /^ {4}(\w+)(?: : [\w.]+)? = (?:.*?)(?:; {2}([\w = ]+) = None)?$/.exec(line)
    if (match !== null) statements.push({ name: match[1] as string, released: names(match[2]) })
  }
  return statements
}

/** Statements of our `forward`, but not its return. */
function ourStatements(code: string): Statement[] {
  const statements: Statement[] = []
  for (const line of code.split('\n').slice(1, -1)) {
    if (/^ {2}(return|let \[)/.test(line)) continue
    const match = /^ {2}(?:(?:const|let) (\w+) = )?(?:.*?)(?:; ([\w = ]+) = null)?$/.exec(line)
    statements.push({ name: match?.[1] ?? null, released: names(match?.[2]) })
  }
  return statements
}

/** What ours leaves to the end of the function: attributes, which the module holds anyway, shapes, and what nobody uses. */
function heldAnyway(node: GoldenNode): boolean {
  return node.op === 'get_attr' || node.target === 'builtins.getattr' || node.users.length === 0
}

/** Our code assigns and releases what PyTorch's does. `golden` are PyTorch's nodes, which agree with ours one by one. */
export function checkCode(gm: GraphModule, golden: readonly GoldenNode[], code: string): void {
  const ours = [...gm.graph.nodes]
  const byName = new Map(golden.map((node, i) => [node.name, { node, name: (ours[i] as { name: string }).name }]))
  const renamed = (name: string): string => byName.get(name)?.name ?? name
  const dropped = (name: string): boolean => {
    const node = byName.get(name)?.node
    if (node === undefined || !heldAnyway(node)) return false
    usedDifferences.add('release-of-memory')
    return true
  }
  const expected = pythonStatements(code).map(({ name, released }) => ({
    name: name !== null && byName.get(name)?.node.users.length === 0 ? null : renamed(name ?? ''),
    released: released.filter((n) => !dropped(n)).map(renamed),
  }))
  expect(ourStatements(gm.code)).toEqual(expected)
}

/** The first part of a module's text, its layers, is PyTorch's; the name of the module is that of the user's class. */
export function checkLayers(gm: GraphModule, text: string): void {
  const layers = (whole: string): string => (whole.split('\n\n')[0] as string).replace(/^\w+/, '')
  expect(layers(String(gm))).toBe(layers(text))
}

/** Shapes that Python writes as annotations, `x: "f32[3, 4]"`, stand in our code as comments. The graph has the notes of ShapeProp. */
export function checkReadable(gm: GraphModule, golden: readonly GoldenNode[], text: string): void {
  const shapes = new Map<string, string>()
  const readable = gm.printReadable({ print: false })
  for (const [, name = '', shape = ''] of readable.matchAll(/(\w+) \/\* (.*?) \*\//g)) shapes.set(name, shape)
  for (const [, name = '', shape = ''] of readable.matchAll(/^ +(?:const|let) (\w+) = .* {2}\/\/ (.*)$/gm)) shapes.set(name, shape)
  const ours = [...gm.graph.nodes].map((node) => node.name)
  const theirs = [...text.matchAll(/(\w+): "(.*?)"/g)].map(([, name, shape = '']): [string | undefined, string] => [
    ours[golden.findIndex((node) => node.name === name)],
    shape,
  ])
  usedDifferences.add('shapes-as-comments')
  expect(theirs.map(([name]) => [name, shapes.get(name ?? '')])).toEqual(theirs)
}
