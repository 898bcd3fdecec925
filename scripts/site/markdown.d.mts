import type { Block, Target } from '../../src/docs/pages/page.ts'

export function slugOf(text: string, taken: Set<string>): string
export function readMarkdown(
  text: string,
  targetOf: (address: string) => Target,
): { readonly title: string; readonly id: string | null; readonly blocks: readonly Block[] }
