// The arguments of a trace: a placeholder for each, and what stands for it in the program.
import { FakeTensorMode } from '../../dispatch/index.ts'
import { recordValue } from '../../fx/graph/nodeValue.ts'
import type { Node } from '../../fx/index.ts'
import { isSymbolicSize } from '../../protocol/index.ts'
import type { Size } from '../../protocol/index.ts'
import { treeMap } from '../../pytree/index.ts'
import type { ShapeEnv, SymInt } from '../../symbols/index.ts'
import { Tensor } from '../../tensor/index.ts'
import type { Memory } from '../trace/aliases.ts'
import { layoutOf } from '../meta/layout.ts'
import type { TensorLayout } from '../meta/layout.ts'
import type { ProxyTensorMode } from '../trace/proxyMode.ts'

interface Input {
  readonly tensor: Tensor
  readonly memory: Memory
  readonly layout: TensorLayout
}

export class TraceInputs {
  readonly #mode: ProxyTensorMode
  readonly #env: ShapeEnv | null
  readonly #fakeMode: FakeTensorMode
  readonly #inputs: Input[] = []
  /** Sizes, strides and offset of each tensor, and each number, as the trace has them. */
  readonly #layouts: (readonly Size[])[] = []

  /** `env`: that of a symbolic trace. */
  constructor(mode: ProxyTensorMode, env: ShapeEnv | null) {
    this.#mode = mode
    this.#env = env
    this.#fakeMode = new FakeTensorMode({ shapeEnv: env })
  }

  /** What stands for the values of an argument. With `isNested` each value has a placeholder, otherwise tensors and numbers. */
  add(name: string, arg: unknown, isNested: boolean): unknown {
    let count = 0
    return treeMap(arg, (leaf) => {
      if (leaf instanceof Tensor) return this.#tensor(`${name}_${++count}`, leaf)
      if (typeof leaf === 'number') return this.#number(`${name}_${++count}`, leaf)
      if (isNested) this.#mode.graph.placeholder(`${name}_${++count}`)
      return leaf
    })
  }

  #tensor(name: string, tensor: Tensor): Tensor {
    const fake = this.#fakeMode.fromTensor(tensor)
    this.#mode.placeholder(name, fake, tensor)
    this.#layouts.push([...fake.symSizes, ...fake.symSteps, fake.symOffset])
    this.#inputs.push({ tensor: fake, memory: this.#mode.memoryOf(fake), layout: layoutOf(fake) })
    return fake
  }

  #number(name: string, value: number): Size {
    const node = this.#mode.graph.placeholder(name)
    const size = this.#symbolFor(node, value)
    this.#layouts.push([isSymbolicSize(size) ? size : value])
    return size
  }

  /** A symbol for an integer in a symbolic trace; another number stays itself. */
  #symbolFor(node: Node, value: number): SymInt | number {
    const size = this.#env === null || !Number.isInteger(value) ? value : this.#env.createSymInt(value)
    if (typeof size === 'number') return value
    this.#mode.sizes?.addNumber(node, size)
    recordValue(node, size)
    return size
  }

  /** Records the shapes and memory that the program has given its arguments. Call it after the mode has written back. */
  relayBack(): void {
    for (const { tensor, memory, layout } of this.#inputs) this.#mode.relayBack(tensor, memory, layout)
  }

  /** The sizes, strides and offset of each tensor, and each number, in the symbols of `env`. */
  layoutsIn(env: ShapeEnv): readonly (readonly (SymInt | number)[])[] {
    return this.#layouts.map((sizes) => sizes.map((size) => env.sizeOf(size)))
  }
}
