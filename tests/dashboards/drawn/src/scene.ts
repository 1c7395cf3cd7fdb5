// A dashboard's JSON as a scene: variables, marks, sections and panels, each with its queries and transformations.
import type { DataSourceRef, DataTransformerConfig } from '@grafana/data';
import type { AnnotationQuery, Dashboard, DataQuery, FieldConfigSource, Panel, RowPanel } from '@grafana/schema';
import {
  behaviors,
  dataLayers,
  DataSourceVariable,
  QueryVariable,
  SceneDataLayerSet,
  SceneDataTransformer,
  SceneGridItem,
  SceneGridLayout,
  SceneGridRow,
  SceneQueryRunner,
  SceneTimeRange,
  SceneVariableSet,
  VizPanel,
  EmbeddedScene,
  VariableValueSelectors,
  SceneControlsSpacer,
  SceneTimePicker,
  SceneRefreshPicker,
  type SceneVariable,
} from '@grafana/scenes';

import { Links, Title } from './heading';

type Place = NonNullable<Panel['gridPos']>;
type Variable = NonNullable<NonNullable<Dashboard['templating']>['list']>[number];

export function sceneOf(board: Dashboard, from: string, to: string): EmbeddedScene {
  return new EmbeddedScene({
    $timeRange: new SceneTimeRange({ from, to, timeZone: 'utc' }),
    $variables: new SceneVariableSet({ variables: (board.templating?.list ?? []).map(variableOf) }),
    $data: new SceneDataLayerSet({ layers: (board.annotations?.list ?? []).map(layerOf) }),
    $behaviors: [new behaviors.CursorSync({ sync: board.graphTooltip })],
    controls: [
      new Title({ title: board.title ?? '' }),
      new VariableValueSelectors({}),
      new SceneControlsSpacer(),
      new Links({ links: board.links ?? [] }),
      new SceneTimePicker({}),
      new SceneRefreshPicker({}),
    ],
    body: new SceneGridLayout({ isLazy: false, children: rowsOf(board.panels as (Panel | RowPanel)[]) }),
  });
}

/** Panels stand under the heading before them; those of a closed one are inside it. */
function rowsOf(panels: (Panel | RowPanel)[]): SceneGridRow[] {
  const rows: SceneGridRow[] = [];
  for (const panel of panels) {
    if (panel.type === 'row') {
      const head = panel as RowPanel;
      rows.push(
        new SceneGridRow({
          key: `row-${head.id}`,
          title: head.title ?? '',
          isCollapsed: head.collapsed,
          y: head.gridPos?.y,
          children: head.panels.map((one) => itemOf(one as Panel)),
        })
      );
    } else {
      const row = rows[rows.length - 1];
      row.setState({ children: [...row.state.children, itemOf(panel as Panel)] });
    }
  }
  return rows;
}

function itemOf(panel: Panel): SceneGridItem {
  const { x, y, w, h } = panel.gridPos as Place;
  return new SceneGridItem({ key: `item-${panel.id}`, x, y, width: w, height: h, body: panelOf(panel) });
}

function panelOf(panel: Panel): VizPanel {
  return new VizPanel({
    key: `panel-${panel.id}`,
    title: panel.title,
    description: panel.description,
    pluginId: panel.type,
    options: panel.options ?? {},
    fieldConfig: (panel.fieldConfig ?? { defaults: {}, overrides: [] }) as FieldConfigSource as never,
    pluginVersion: '13.2.3',
    $data: panel.targets?.length ? dataOf(panel) : undefined,
  });
}

function dataOf(panel: Panel): SceneDataTransformer {
  return new SceneDataTransformer({
    $data: new SceneQueryRunner({
      datasource: panel.datasource as DataSourceRef,
      queries: panel.targets as unknown as DataQuery[] as never,
      minInterval: panel.interval,
      maxDataPointsFromWidth: true,
    }),
    transformations: (panel.transformations ?? []) as DataTransformerConfig[],
  });
}

function variableOf(told: Variable): SceneVariable {
  const { name, label, description } = told;
  if (told.type === 'datasource') {
    return new DataSourceVariable({ name, label, description, pluginId: String(told.query), regex: told.regex });
  }
  return new QueryVariable({
    name,
    label,
    description,
    datasource: told.datasource as DataSourceRef,
    query: told.query as never,
    isMulti: told.multi,
    includeAll: told.includeAll,
    allValue: told.allValue,
    refresh: told.refresh,
    regex: told.regex,
    sort: told.sort,
    value: told.current?.value as never,
    text: told.current?.text as never,
  });
}

function layerOf(query: AnnotationQuery): dataLayers.AnnotationsDataLayer {
  return new dataLayers.AnnotationsDataLayer({ name: query.name, query, isEnabled: query.enable });
}
