// Traces a sample and compares it with its golden: graph, text, table, numbers, shapes. Every difference has to be one of differences.ts.
import { expect } from 'vitest'
import { Tensor } from 'tensorfx'
import { symbolicTrace } from 'tensorfx/fx'
import type { GraphModule, SymbolicTraceOptions } from 'tensorfx/fx'
import { Module } from 'tensorfx/nn'
import { ShapeProp } from 'tensorfx/fx/passes'
import { formatTabular } from '../../../src/fx/text/format.ts'
import type { Program } from './common.ts'
import { parseGraph } from './parseGraph.ts'
import { expectedNodes, metaRules, tableRule } from './differences.ts'
import type { Applied } from './differences.ts'
import { goldenGraph, goldenText, toGoldenNodes } from './golden.ts'
import type { GoldenError, GoldenMeta, GoldenNode, GoldenOutput, GoldenTensor } from './golden.ts'

type AnyFunction = (...args: unknown[]) => unknown

/** Runs a program that takes any arguments. */
export const run = (program: unknown, inputs: readonly unknown[]): unknown =>
  program instanceof Module ? (program.call as AnyFunction).apply(program, [...inputs]) : (program as AnyFunction)(...inputs)

/** The sample as a graph, afresh. */
export function traced(sample: Program): GraphModule {
  const options: SymbolicTraceOptions = sample.trace?.() ?? {}
  return symbolicTrace(sample.make(), options)
}

export const isError = (value: unknown): value is GoldenError => typeof value === 'object' && value !== null && 'error_type' in value

/** The graph agrees with PyTorch's nodes: op, name, target, type, args, kwargs, users; and so does its text. */
export function checkGraph(gm: GraphModule, golden: readonly GoldenNode[], applied?: Applied): void {
  const ours = toGoldenNodes(gm.graph)
  const expected = expectedNodes(golden, ours, applied)
  expect(ours).toEqual(expected)
  expect(String(gm.graph)).toBe(goldenText(goldenGraph(expected)))
}

const ADDRESS = / at 0x[0-9a-f]+/g

/** The cells of a table in tabulate's 'simple' format. */
export function tableCells(text: string): string[][] {
  const lines = text.trimEnd().split('\n')
  const rule = lines[1] as string
  const starts = [...rule.matchAll(/-+/g)].map((m) => m.index)
  return lines.filter((_, i) => i !== 1).map((line) => starts.map((start, i) => line.slice(start, starts[i + 1]).trim()))
}

/** Our table of PyTorch's own nodes has PyTorch's cells. */
export function checkTable(golden: readonly GoldenNode[], text: string): void {
  const theirs = tableCells(text).map((row) => row.map((cell) => cell.replace(ADDRESS, '')))
  const ours = tableCells(formatTabular(goldenGraph(golden)))
  expect(ours.length).toBe(theirs.length)
  for (const [i, row] of theirs.entries())
    expect((ours[i] as string[]).map((cell) => cell.replace(/^golden\./, ''))).toEqual(tableRule(row, golden[i - 1]))
}

/** A value is what PyTorch computed, up to rounding. */
export function checkOutput(value: unknown, golden: GoldenOutput): void {
  if (typeof golden !== 'object' || golden === null) return expect(value).toEqual(golden)
  if ('shape' in golden) return checkTensor(value, golden as GoldenTensor)
  if ('dict' in golden) {
    expect(Object.keys(value as object)).toEqual(Object.keys(golden.dict))
    for (const [key, item] of Object.entries(golden.dict)) checkOutput((value as Record<string, unknown>)[key], item)
    return
  }
  // A tuple, a list or a named tuple, by its class.
  const [items] = Object.values(golden) as unknown as [readonly GoldenOutput[]]
  expect(Array.isArray(value)).toBe(true)
  expect((value as unknown[]).length).toBe(items.length)
  for (const [i, item] of items.entries()) checkOutput((value as unknown[])[i], item)
}

function checkTensor(value: unknown, golden: GoldenTensor): void {
  expect(value instanceof Tensor).toBe(true)
  const tensor = value as Tensor
  expect(tensor.shape).toEqual(golden.shape)
  expect(tensor.dtype).toBe(metaRules.dtype(golden.dtype))
  const data = Array.from(tensor.contiguous().toTypedArray(), Number)
  const pairs: [number[], readonly (number | string)[]][] =
    golden.data === undefined
      ? [
          [data.slice(0, 8), golden.first8 ?? []],
          [data.slice(-8), golden.last8 ?? []],
        ]
      : [[data, golden.data]]
  for (const [got, wanted] of pairs)
    expectClose(
      got,
      wanted.map((v) => Number(String(v).replace('inf', 'Infinity'))),
      golden.dtype === 'float16' ? 1e-3 : 1e-5,
    )
}

function expectClose(got: readonly number[], wanted: readonly number[], tolerance: number): void {
  expect(got.length).toBe(wanted.length)
  const far = got.findIndex((v, i) => v !== wanted[i] && !(Math.abs(v - (wanted[i] as number)) <= tolerance * (1 + Math.abs(wanted[i] as number))))
  expect(far < 0 ? null : { index: far, got: got[far], wanted: wanted[far] }).toBeNull()
}

/** The notes of ShapeProp are PyTorch's: shape, dtype, stride, memory format, whether gradients are wanted, and the type. */
export function checkShapes(gm: GraphModule, golden: readonly GoldenMeta[], inputs: readonly unknown[]): void {
  new ShapeProp(gm).propagate(...inputs)
  const theirs = golden.map(({ tensor_meta, type }) => ({ tensor_meta: metaRules.meta(tensor_meta), type: metaRules.type(type) }))
  const ours = [...gm.graph.nodes].map((node) => ({
    tensor_meta: constantsAsText(node.meta['tensor_meta'] ?? null),
    type: (node.meta['type'] as string | undefined) ?? null,
  }))
  expect(ours).toEqual(theirs)
}

/** The goldens hold constants beside tensors as text. */
function constantsAsText(meta: unknown): unknown {
  if (Array.isArray(meta)) return meta.map(constantsAsText)
  if (typeof meta !== 'object' || meta === null) return meta === null ? null : String(meta)
  return 'requiresGrad' in meta ? meta : Object.fromEntries(Object.entries(meta).map(([k, v]) => [k, constantsAsText(v)]))
}

/** The text of a graph agrees with PyTorch's; `strings` are the string constants that may occur in it. */
export function checkText(gm: GraphModule, text: string, strings: readonly string[]): void {
  checkGraph(gm, parseGraph(text, strings))
}
