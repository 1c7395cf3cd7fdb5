// The types of dashboards as JSON. It has the values of Grafana's enums, not the enums themselves: `Plain` takes one to
// the other. A target is any object for Grafana; what a query looks like, its data source says.
import type { Dashboard, Panel, RowPanel, GraphFieldConfig, TableFieldOptions } from '@grafana/schema';
import type { Options as StatOptions } from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type { Options as TableOptions } from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen';
import type { Options as TextOptions } from '@grafana/schema/dist/esm/raw/composable/text/panelcfg/x/TextPanelCfg_types.gen';
import type { Options as TimeSeriesOptions } from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';
import type {
  Options as HeatmapOptions,
  FieldConfig as HeatmapFieldConfig,
} from '@grafana/schema/dist/esm/raw/composable/heatmap/panelcfg/x/HeatmapPanelCfg_types.gen';

export type Plain<T> = T extends string
  ? `${T}`
  : T extends number | boolean | null | undefined
    ? T
    : T extends (infer Item)[]
      ? Plain<Item>[]
      : T extends object
        ? { [Key in keyof T]: Plain<T[Key]> }
        : T;

type Source = { type: string; uid: string };
type Query = { datasource: Source; refId: string };
type PrometheusQuery = Query & {
  expr: string;
  format: 'time_series' | 'table' | 'heatmap';
  instant: boolean;
  range: boolean;
  editorMode: 'code';
  legendFormat: string;
  exemplar?: boolean;
  interval: string;
};
type PostgresQuery = Query & { rawSql: string; rawQuery: true; format: 'time_series' | 'table'; editorMode: 'code' };
type SqliteQuery = Query & {
  queryText: string;
  rawQueryText: string;
  queryType: 'table' | 'time series';
  timeColumns: string[];
};
type Target = PrometheusQuery | PostgresQuery | SqliteQuery;

type Typed<Kind extends string, Options, Custom> = Omit<Plain<Panel>, 'type' | 'options' | 'fieldConfig' | 'targets'> & {
  type: Kind;
  targets: Target[];
  options: Plain<Options>;
  fieldConfig: {
    defaults: Omit<NonNullable<Plain<Panel>['fieldConfig']>['defaults'], 'custom'> & { custom?: Plain<Partial<Custom>> };
    overrides: NonNullable<Plain<Panel>['fieldConfig']>['overrides'];
  };
};

export type Words = Omit<Plain<Panel>, 'type' | 'options'> & { type: 'text'; options: Plain<TextOptions> };
export type Row = Omit<Plain<RowPanel>, 'panels'> & { panels: AnyPanel[] };
export type AnyPanel =
  | Typed<'stat', Partial<StatOptions>, object>
  | Typed<'timeseries', Partial<TimeSeriesOptions>, GraphFieldConfig>
  | Typed<'table', Partial<TableOptions>, TableFieldOptions>
  | Typed<'heatmap', Partial<HeatmapOptions>, HeatmapFieldConfig>
  | Words;

type PrometheusMarks = { expr: string; interval: string; refId: string };
type PostgresMarks = { editorMode: 'code'; format: 'table'; rawQuery: true; rawSql: string; refId: string };
type SqliteMarks = { queryText: string; rawQueryText: string; queryType: 'table'; timeColumns: string[]; refId: string };
type Told = { type: 'tags'; tags: string[]; matchAny: boolean; limit: number; refId: string };
// Grafana's own type of a mark's query is that of one panel's alone; a data source adds its own keys.
type Marks = {
  name: string;
  datasource: Source;
  enable: boolean;
  iconColor: string;
  target: PrometheusMarks | PostgresMarks | SqliteMarks | Told;
  expr?: string;
  step?: string;
  tagKeys?: string;
  textFormat?: string;
  titleFormat?: string;
};

export type Board = Omit<Plain<Dashboard>, 'panels' | 'id' | 'annotations'> & {
  id: null;
  panels: (AnyPanel | Row)[];
  annotations: { list: Marks[] };
  __requires: { type: 'grafana' | 'datasource' | 'panel'; id: string; name: string; version: string }[];
};
