// Backends with one planted fault, and random programs to plant them in.
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Interpreter, symbolicTrace } from 'tensorfx/fx'
import type { GraphModule, Node } from 'tensorfx/fx'
import { randomFrom } from '../../scripts/fuzz/random.mjs'
import type { Backend } from '../../src/dynamo/index.ts'
import { present } from '../../src/errors/index.ts'
import { noGrad } from '../../src/autograd/index.ts'

const UNARY: readonly ((x: Tensor) => Tensor)[] = [
  (x) => x.sin(),
  (x) => x.tanh(),
  (x) => torch.relu(x),
  (x) => x.sigmoid(),
  (x) => x.mul(0.5),
  (x) => x.add(1),
  (x) => x.sub(x.mean()),
  (x) => torch.softmax(x, -1),
  (x) => x.exp().clamp(0, 10),
  (x) => x.transpose(0, 1).matmul(x),
]
const BINARY: readonly ((x: Tensor, y: Tensor) => Tensor)[] = [(x, y) => x.add(y), (x, y) => x.mul(y), (x, y) => x.sub(y), (x, y) => x.matmul(y)]

/** A random program of two square matrices. */
export function randomGraph(seed: number, length = 6): GraphModule {
  const { chance, pick } = randomFrom(seed)
  return symbolicTrace((a: Tensor, b: Tensor) => {
    const values = [a, b]
    while (values.length < length + 2) {
      const x = pick(values.slice(-3))
      values.push(chance(0.6) ? pick(UNARY)(x) : pick(BINARY)(x, pick(values)))
    }
    return present(values.at(-1), 'a value').add(present(values.at(-2), 'a value'))
  })
}

export const randomInputs = (seed: number, size = 4): Tensor[] => {
  const { next } = randomFrom(seed + 1000)
  const matrix = (): Tensor => torch.tensor(Array.from({ length: size }, () => Array.from({ length: size }, () => 2 * next() - 1)))
  return [matrix(), matrix()]
}

/** The nodes whose value a fault can change, and which the result depends on. */
export const places = (gm: GraphModule): Node[] =>
  [...gm.graph.nodes].filter((node) => node.op !== 'placeholder' && node.op !== 'output' && node.op !== 'get_attr' && node.users.size > 0)

/** The value of a node, gone wrong: `value` is right, `args` are its arguments. */
export type Fault = (value: Tensor, args: readonly unknown[], gm: GraphModule) => unknown

/** What is computed in the place of one node: gets the interpreter, the node, and the values of its arguments. */
export type Replacement = (run: Interpreter, node: Node, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>) => unknown

/** Runs a graph with a replacement for one node. */
export class Faulty extends Interpreter {
  readonly #name: string
  readonly #replacement: Replacement

  constructor(gm: GraphModule, name: string, replacement: Replacement) {
    super(gm)
    this.#name = name
    this.#replacement = replacement
  }

  override runNode(node: Node): unknown {
    if (node.name !== this.#name) return super.runNode(node)
    const [args, kwargs] = this.fetchArgsKwargs(node)
    return this.#replacement(this, node, args, kwargs)
  }
}

/** The right value of a node. */
export const rightValue = (run: Interpreter, node: Node): unknown => Interpreter.prototype.runNode.call(run, node)

/** A backend that computes one node otherwise. */
export function replacing(node: string, replacement: Replacement, name: string): Backend {
  const backend: Backend =
    (gm) =>
    (...inputs: readonly unknown[]) =>
      new Faulty(gm, node, replacement).run(...inputs)
  return Object.defineProperty(backend, 'name', { value: name })
}

/** A backend that is right but for one node. */
export const withFault = (node: string, fault: Fault, name = 'planted'): Backend =>
  replacing(node, (run, at, args) => fault(rightValue(run, at) as Tensor, args, run.module as GraphModule), name)

/** The first element changed. */
const firstElement = (value: Tensor, change: number): Tensor => {
  const copy = value.clone()
  noGrad(() => copy.view(-1).narrow(0, 0, 1).fill_(change))
  return copy
}

const isTensor = (value: unknown): value is Tensor => typeof value === 'object' && value !== null && 'storage' in value

/** How a node goes wrong. Each is made anew, since some keep a state. */
export const FAULTS: Readonly<Record<string, () => Fault>> = {
  'wrong value': () => (value) => value.add(1),
  'wrong element': () => (value) => firstElement(value, 77),
  'off by a tiny scale': () => (value) => value.mul(1.001).add(0.001),
  'NaN in one element': () => (value) => firstElement(value, NaN),
  infinity: () => (value) => firstElement(value, Infinity),
  throws: () => () => {
    throw new RangeError('no kernel for this node')
  },
  'overwrites its input': () => (value, args) => {
    const result = value.clone()
    const input = args.find(isTensor)
    if (input !== undefined) noGrad(() => input.mul_(3).add_(1))
    return result
  },
  'reuses its buffer': () => {
    const buffers = new Map<string, Tensor>()
    return (value) => {
      const key = value.shape.join()
      const buffer = buffers.get(key)
      if (buffer === undefined) {
        const made = value.clone()
        buffers.set(key, made)
        return made
      }
      return noGrad(() => buffer.copy_(value))
    }
  },
  flaky: () => {
    let calls = 0
    return (value) => ([1, 2, 4].includes(calls++ % 5) ? value.add(1) : value)
  },
  'wrong from the second run on': () => {
    let calls = 0
    return (value) => (calls++ === 0 ? value : value.add(1))
  },
}

/** A new fault of a kind. */
export const faultOf = (kind: string): Fault => present(FAULTS[kind], `a fault '${kind}'`)()
