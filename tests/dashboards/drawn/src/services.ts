// The services by which Grafana's libraries reach its application: requests to its server, data sources by name, the
// text of variables, and the running of a query. The server is `backend.py`.
import {
  EventBusSrv,
  LoadingState,
  preProcessPanelData,
  toDataFrame,
  DataTopic,
  type DataFrame,
  type DataQueryRequest,
  type DataQueryResponse,
  type DataSourceApi,
  type DataSourceInstanceSettings,
  type DataSourceRef,
  type PanelData,
  type ScopedVars,
} from '@grafana/data';
import { PrometheusDatasource } from '@grafana/prometheus';
import {
  setAppEvents,
  setBackendSrv,
  setDataSourceSrv,
  setEchoSrv,
  FakeEchoSrv,
  setPluginImportUtils,
  setRunRequest,
  setTemplateSrv,
  type BackendSrv,
  type BackendSrvRequest,
  type DataSourceSrv,
  type FetchResponse,
  type TemplateSrv,
} from '@grafana/runtime';
import { sceneGraph, type SceneObject, type VariableCustomFormatterFn } from '@grafana/scenes';
import { catchError, from, map, of, type Observable } from 'rxjs';

declare global {
  interface Window {
    __grafanaSceneContext?: SceneObject;
  }
}

const GRAFANA_SOURCE = '-- Grafana --';

export function offerServices(settings: DataSourceInstanceSettings): void {
  setAppEvents(new EventBusSrv());
  setEchoSrv(new FakeEchoSrv());
  setBackendSrv(server);
  setTemplateSrv(variables);
  setPluginImportUtils({
    importPanelPlugin: (id) => Promise.reject(new Error(`no panel plugin ${id} is drawn here`)),
    getPanelPluginFromCache: () => undefined,
  });
  setDataSourceSrv(sources(settings));
  setRunRequest(run);
}

/** Only what the libraries use of it. */
const server = {
  fetch: <T>(options: BackendSrvRequest): Observable<FetchResponse<T>> => from(answered<T>(options)),
  get: async <T>(url: string, params?: Record<string, string>): Promise<T> =>
    (await answered<T>({ url, params, method: 'GET' })).data,
} as unknown as BackendSrv;

async function answered<T>(options: BackendSrvRequest): Promise<FetchResponse<T>> {
  const isForm = options.headers?.['Content-Type'] === 'application/x-www-form-urlencoded';
  const body = options.data && (isForm ? new URLSearchParams(options.data).toString() : JSON.stringify(options.data));
  const query = options.params ? `?${new URLSearchParams(options.params)}` : '';
  const response = await fetch(options.url + query, {
    method: options.method ?? 'GET',
    headers: isForm ? options.headers : { 'Content-Type': 'application/json', ...options.headers },
    body: options.method === 'POST' ? body : undefined,
  });
  const data = await response.json();
  const told = { data, status: response.status, statusText: response.statusText, ok: response.ok, config: options };
  if (!response.ok) {
    throw told;
  }
  return { ...told, headers: response.headers, redirected: false, type: response.type, url: options.url };
}

function sceneOf(scopedVars?: ScopedVars): SceneObject | undefined {
  return scopedVars?.__sceneObject?.value?.valueOf() ?? window.__grafanaSceneContext;
}

const variables: TemplateSrv = {
  getVariables: () => [],
  replace: (target, scopedVars, format) => {
    const scene = sceneOf(scopedVars);
    return scene && target
      ? sceneGraph.interpolate(scene, target, scopedVars, format as VariableCustomFormatterFn)
      : (target ?? '');
  },
  containsTemplate: (target) => /\$\w|\$\{|\[\[/.test(target ?? ''),
  updateTimeRange: () => {},
};

function sources(settings: DataSourceInstanceSettings): DataSourceSrv {
  const prometheus = new PrometheusDatasource(settings as never);
  prometheus.meta = settings.meta;
  const uidOf = (ref?: DataSourceRef | string | null, scopedVars?: ScopedVars) =>
    variables.replace((typeof ref === 'string' ? ref : ref?.uid) ?? settings.uid, scopedVars);
  return {
    get: async (ref, scopedVars) => {
      const uid = uidOf(ref, scopedVars);
      if (uid === GRAFANA_SOURCE) {
        return emptySource;
      }
      if (uid !== settings.uid) {
        throw new Error(`Datasource ${uid} was not found`);
      }
      return prometheus as unknown as DataSourceApi;
    },
    getList: (filters) => (!filters?.pluginId || filters.pluginId === settings.type ? [settings] : []),
    getInstanceSettings: (ref, scopedVars) => (uidOf(ref, scopedVars) === settings.uid ? settings : undefined),
    reload: async () => {},
    registerRuntimeDataSource: () => {},
  };
}

/** Grafana's own store of annotations, in which nobody has told of a deploy. */
const emptySource = {
  uid: GRAFANA_SOURCE,
  type: 'grafana',
  getRef: () => ({ uid: GRAFANA_SOURCE, type: 'grafana' }),
  annotations: {},
  query: () => of({ data: [] }),
} as unknown as DataSourceApi;

/** One request and its answer as panels take it; what is refused stands in `errors`. */
const run: Parameters<typeof setRunRequest>[0] = (source, request, own) => {
  const asked = (own ?? source.query.bind(source))(request) as
    | Observable<DataQueryResponse>
    | Promise<DataQueryResponse>;
  return from(asked).pipe(
    map((response) => panelData(request, response)),
    catchError((error: unknown) => {
      const message = (error as { data?: { message?: string } }).data?.message ?? String(error);
      return of({ ...loading(request), state: LoadingState.Error, errors: [{ message }] });
    })
  );
};

function loading(request: DataQueryRequest): PanelData {
  return { state: LoadingState.Loading, series: [], timeRange: request.range, request };
}

function panelData(request: DataQueryRequest, response: DataQueryResponse): PanelData {
  const isFrames = response.data.every((found) => typeof found === 'object' && 'fields' in found);
  const frames: DataFrame[] = isFrames ? response.data.map((found) => toDataFrame(found)) : response.data;
  const isMark = (frame: DataFrame) => frame.meta?.dataTopic === DataTopic.Annotations;
  const series = frames.filter((frame) => !isMark(frame));
  const annotations = frames.filter(isMark);
  const errors = response.errors ?? (response.error ? [response.error] : undefined);
  const state = errors?.length ? LoadingState.Error : LoadingState.Done;
  const found: PanelData = { ...loading(request), state, series, annotations, errors };
  return isFrames ? preProcessPanelData(found) : found;
}
