/** What the soak needs of the library; `rss` gives the memory of the process. */
export interface SoakApi {
  readonly torch: import('../../src/torch.ts').Torch
  readonly kernels: typeof import('../../src/entries/kernels.ts')
  readonly compile: typeof import('../../src/index.ts').compile
  readonly config: import('../../src/config.ts').Config
  readonly noGrad: typeof import('../../src/index.ts').noGrad
  readonly reset: () => void
  readonly rss: () => number
}

export interface Sample {
  readonly count: number
  readonly bytes: number
  readonly reserved: number
  readonly rss: number
  readonly failures: number
}

export interface Figures {
  readonly programs: Readonly<Record<string, number>>
  readonly failures: Readonly<Record<string, number>>
  readonly workers: { readonly finished: number; readonly killed: number }
  readonly samples: readonly Sample[]
}

export function soakProgram(api: SoakApi, seed: number, figures: Figures): void
export function soak(
  api: SoakApi,
  options: { readonly seed: number; readonly goesOn: (count: number) => boolean; readonly every?: number },
): Promise<Figures>
export function growth(samples: readonly Sample[], allowedBytes: number, allowedRss: number): string
