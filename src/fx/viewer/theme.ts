// The colours of a graph page, for light and dark mode: as custom properties of its style sheet, and for what is drawn on the canvas.
import type { Category } from './layout/boxes.ts'
import type { Change } from './view.ts'

/** Colours, as CSS writes them. */
export interface Theme {
  readonly page: string
  readonly panel: string
  readonly ink: string
  readonly soft: string
  readonly line: string
  readonly edge: string
  readonly frame: string
  readonly frameLine: string
  readonly focus: string
  readonly hit: string
  readonly code: string
  readonly categories: Readonly<Record<Category, string>>
  readonly changes: Readonly<Record<Exclude<Change, 'same'>, string>>
}

export const LIGHT: Theme = {
  page: '#f5f6f8',
  panel: '#ffffff',
  ink: '#1c2430',
  soft: '#56616f',
  line: '#dbe0e7',
  edge: '#97a2b0',
  frame: '#ebeef3',
  frameLine: '#d0d7e0',
  focus: '#1a5bc8',
  hit: '#b45309',
  code: '#f3f5f8',
  categories: {
    input: '#64748b',
    parameter: '#a3acb8',
    layer: '#3f74d1',
    activation: '#c4622d',
    normalization: '#3a9270',
    pooling: '#2c93a3',
    shape: '#a0853a',
    math: '#8462bd',
  },
  changes: { added: '#137036', removed: '#b91f1f', changed: '#9c4706' },
}

export const DARK: Theme = {
  page: '#11151b',
  panel: '#1a2029',
  ink: '#e7ebf1',
  soft: '#9aa7b6',
  line: '#2d3642',
  edge: '#5d6a7b',
  frame: '#161b23',
  frameLine: '#303a47',
  focus: '#6aa8ff',
  hit: '#f0b45a',
  code: '#141a22',
  categories: {
    input: '#7f8ea3',
    parameter: '#5d6875',
    layer: '#5b8ee6',
    activation: '#d97f4d',
    normalization: '#52ad88',
    pooling: '#45aebf',
    shape: '#bfa257',
    math: '#a183d8',
  },
  changes: { added: '#4cc778', removed: '#f47272', changed: '#f0b45a' },
}

/** The theme as custom properties: `--ink`, `--category-layer`, `--added`. */
export function properties(theme: Theme): string {
  const { categories, changes, ...colours } = theme
  const named = Object.entries(categories).map(([name, colour]) => [`category-${name}`, colour] as const)
  return [...Object.entries(colours), ...named, ...Object.entries(changes)].map(([name, colour]) => `--${name}: ${colour};`).join(' ')
}
