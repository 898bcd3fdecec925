import type { Tensor, torch } from 'tensorfx'

export function digestsOf(
  build: {
    readonly torch: typeof torch
    readonly compiled: (f: (...args: Tensor[]) => Tensor) => (...args: Tensor[]) => Tensor
  },
  isChosen?: (name: string) => boolean,
): Readonly<Record<string, readonly string[]>>
