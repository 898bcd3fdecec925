// One kernel in the place of several operators of a graph with sizes, for any sizes. It allocates its results and takes no more of its inputs for granted than it checks at each call.
import { writeBacksOf } from '../../aot/meta/compiled.ts'
import type { GraphModule } from '../../fx/index.ts'
import { compileKernel, printKernel, scratchBytes, sizeOf } from '../../kernels/index.ts'
import type { CompiledKernel, DType, Kernel } from '../../kernels/index.ts'
import { launch, scratchMemory } from '../../ops/eager/launch.ts'
import { Tensor, asTensor } from '../../tensor/index.ts'
import { emitLoops } from '../emit/loops.ts'
import type { Operand } from '../emit/operands.ts'
import { coversBuffer, withoutDeadNodes } from '../ir.ts'
import type { Buffer, IrGraph } from '../ir.ts'
import { nth } from '../known.ts'
import { lower } from '../lowering.ts'
import { placeBuffers } from '../placement.ts'
import { schedule } from '../scheduler.ts'
import { Layouts, SizeNames, sameProduct, valueOf } from './layouts.ts'
import type { Product, Sample } from './layouts.ts'

/** The specs with which a graph is lowered for a sample. */
export const specsOf = (samples: readonly Sample[]): Parameters<typeof lower>[1][number][] =>
  samples.map((sample) => (sample.kind === 'tensor' ? sample.spec : sample.value))

/** Lowers a graph for a sample: nothing is chosen by its sizes, which are named. */
export function lowerSample(gm: GraphModule, samples: readonly Sample[], names: SizeNames | null): IrGraph {
  const sized = {
    isSize: (position: number) => samples[position]?.kind === 'size',
    valueOf: (count: number) => sizeOf(names === null ? count : names.of(count)),
  }
  return withoutDeadNodes(lower(gm, specsOf(samples), { sized }))
}

/** A result: its memory is the kernel's to allocate. */
interface Result {
  readonly buffer: Buffer
  readonly dtype: DType
  readonly shape: readonly Product[]
}

/** A kernel that was written for a sample. */
interface Written {
  readonly kernel: Kernel
  readonly operands: readonly Operand[]
  readonly results: readonly Result[]
  readonly products: readonly Product[]
  /** From results that may lie in the memory of an input to that input. */
  readonly overwrites: ReadonlyMap<number, number>
}

/** Writes the only kernel of a graph; null if it takes several steps, or returns anything but their whole results. */
function written(gm: GraphModule, samples: readonly Sample[], layouts: Layouts, sample: 0 | 1): Written | null {
  const names = new SizeNames(layouts, sample)
  const ir = lowerSample(gm, samples, names)
  const groups = schedule(ir)
  const [group] = groups
  if (group?.kind !== 'loops' || groups.length > 1) return null
  const results: Result[] = []
  for (const output of ir.outputs) {
    if (output.kind !== 'view' || output.view.buffer.producer === null || output.view.buffer.isComplex || !coversBuffer(output.view)) return null
    if (results.some(({ buffer }) => buffer === output.view.buffer) || output.view.dtype !== output.view.buffer.dtype) return null
    const { buffer, dtype, shape } = output.view
    results.push({ buffer, dtype, shape: shape.map((size) => layouts.productOf(size, sample)) })
  }
  const placement = placeBuffers(ir, groups, writeBacksOf(gm), specsOf(samples))
  // The name is that of all kernels with this text, whichever graph had them first.
  const { kernel, operands } = emitLoops('fused_for_sizes', group, placement, names)
  const overwrites = new Map(
    results.flatMap(({ buffer }, i): [number, number][] => {
      const input = placement.inPlace.get(buffer)
      return input === undefined ? [] : [[i, input]]
    }),
  )
  return { kernel, operands, results, products: names.products(), overwrites }
}

const sameProducts = (a: readonly Product[], b: readonly Product[]): boolean =>
  a.length === b.length && a.every((one, i) => sameProduct(one, nth(b, i)))

const agree = (a: Written, b: Written): boolean =>
  printKernel(a.kernel) === printKernel(b.kernel) &&
  sameProducts(a.products, b.products) &&
  a.results.length === b.results.length &&
  [...a.overwrites].join() === [...b.overwrites].join() &&
  a.results.every(({ dtype, shape }, i) => dtype === b.results[i]?.dtype && sameProducts(shape, b.results[i].shape)) &&
  a.operands.every((operand, i) => sameOperand(operand, nth(b.operands, i)))

function sameOperand(a: Operand, b: Operand): boolean {
  if (a.kind === 'scalar' || b.kind === 'scalar') return a.kind === 'scalar' && b.kind === 'scalar' && a.input.placeholder === b.input.placeholder
  return a.buffer.name === b.buffer.name && a.offset === b.offset
}

/** A compiled kernel for any sizes. */
export class SizedKernel {
  readonly #layouts: Layouts
  readonly #compiled: CompiledKernel
  readonly #operands: readonly Operand[]
  readonly #results: readonly Result[]
  readonly #products: readonly Product[]
  readonly #hasScratch: boolean
  /** From results that may lie in the memory of an input, if both are contiguous, to that input. */
  readonly overwrites: ReadonlyMap<number, number>

  private constructor(layouts: Layouts, { kernel, operands, results, products, overwrites }: Written) {
    this.#layouts = layouts
    this.overwrites = overwrites
    this.#compiled = compileKernel(kernel)
    this.#operands = operands
    this.#results = results
    this.#products = products
    layouts.relyOn([...products, ...results.flatMap(({ shape }) => shape)])
    this.#hasScratch = (kernel.scratch ?? []).length > 0
  }

  /** Compiles a graph, with its `meta.writeBacks`, from two samples of its inputs; null if it is not one kernel, or if that differs in more than its sizes. */
  static compile(gm: GraphModule, a: readonly Sample[], b: readonly Sample[]): SizedKernel | null {
    const layouts = Layouts.of(a, b)
    if (layouts === null) return null
    const [one, other] = [written(gm, a, layouts, 0), written(gm, b, layouts, 1)]
    return one !== null && other !== null && agree(one, other) ? new SizedKernel(layouts, one) : null
  }

  /** The loop IR as text. */
  get text(): string {
    return this.#compiled.text
  }

  /** Computes the results, in the order of the graph's outputs; null if the kernel is not for such inputs. */
  run(inputs: readonly unknown[]): readonly Tensor[] | null {
    const values = this.#layouts.valuesOf(inputs)
    if (values === null) return null
    const made = this.#results.map(({ shape, dtype }) =>
      Tensor.empty(
        shape.map((size) => valueOf(size, values)),
        dtype,
      ),
    )
    const tensors: Tensor[] = []
    const numbers: number[] = []
    for (const operand of this.#operands) {
      if (operand.kind === 'scalar') numbers.push(Number(inputs[operand.input.placeholder]))
      else if (operand.buffer.input >= 0) tensors.push(asTensor(inputs[operand.buffer.input], 'an input of a kernel'))
      else
        tensors.push(
          nth(
            made,
            this.#results.findIndex(({ buffer }) => buffer === operand.buffer),
          ),
        )
    }
    const sizes = this.#products.map((product) => valueOf(product, values))
    numbers.push(...sizes)
    if (this.#hasScratch) numbers.push(scratchMemory(scratchBytes(this.#compiled.kernel, ({ name }) => nth(sizes, Number(name.slice(1))))))
    launch(this.#compiled, tensors, numbers)
    return made
  }
}
